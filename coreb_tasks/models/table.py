"""A ``ModelMeta`` for each row of the table of models."""

from __future__ import annotations

from typing import Any

from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper

from coreb_tasks.facts import TASKS
from coreb_tasks.facts.models import MODELS as FACTS
from coreb_tasks.facts.models import Model
from coreb_tasks.wrappers.okapi import BM25Okapi
from coreb_tasks.wrappers.yes_no import YesNoReranker, warn_of_remote_code


def load_sentence_transformer(
    model_name: str,
    revision: str | None = None,
    device: str | None = None,
    *,
    max_seq_length: int | None = None,
    trust_remote_code: bool = False,
    **kwargs: Any,
) -> SentenceTransformerEncoderWrapper:
    """mteb's wrapper around a sentence-transformers model, with what it has no argument for.

    Args:
        model_name: hub name or local folder.
        revision: on the hub; None for the newest.
        device: None for sentence-transformers' own choice.
        max_seq_length: inputs are cut to so many tokens; None for the model's own limit.
        trust_remote_code: let code from the model's repository run. A warning says so.
        kwargs: for mteb's wrapper (``model_prompts``, ``embed_dim``) and the model's constructor.
    """
    if trust_remote_code:
        warn_of_remote_code(model_name, revision)
        kwargs["trust_remote_code"] = True
    encoder = SentenceTransformerEncoderWrapper(model_name, revision=revision, device=device, **kwargs)
    if max_seq_length is not None:
        encoder.model.max_seq_length = max_seq_length
    return encoder


def _encoder(model: Model) -> dict[str, Any]:
    options = {"max_seq_length": model.max_tokens, "model_prompts": _prompts(model)}
    return {
        "loader": load_sentence_transformer,
        "loader_kwargs": {
            **{key: value for key, value in options.items() if value},
            **({"trust_remote_code": True} if model.trust_remote_code else {}),
        },
        "model_type": ["dense"],
        "similarity_fn_name": "cosine",
        "framework": ["Sentence Transformers", "PyTorch"],
    }


def _yes_no(model: Model) -> dict[str, Any]:
    return {
        "loader": YesNoReranker,
        # In the precision that the checkpoint is stored in.
        "loader_kwargs": {"max_length": model.max_tokens, "system": model.system, "dtype": "auto"},
        "model_type": ["cross-encoder"],
        "similarity_fn_name": None,
        "framework": ["PyTorch", "Transformers"],
    }


def _bm25(model: Model) -> dict[str, Any]:
    return {
        "loader": BM25Okapi,
        "model_type": ["sparse"],
        "similarity_fn_name": None,
        "framework": [],
        "extra_requirements_groups": ["bm25s"],
    }


_OF_A_KIND = {"encoder": _encoder, "yes-no": _yes_no, "bm25": _bm25}


def _prompts(model: Model) -> dict[str, str]:
    """By mteb's keys: a side of every task, or a side of one task."""
    prompts = dict(model.prompts)
    for task in TASKS:
        query, document = model.task_prompts.get(task.split("-")[1], ("", ""))
        prompts |= {f"{task}-query": query, f"{task}-document": document} if query else {}
    return prompts


def metadata(model: Model) -> ModelMeta:
    """mteb's metadata of a model."""
    return ModelMeta(
        name=model.name,
        revision=model.revision,
        release_date=None,
        languages=None,
        n_parameters=model.parameters,
        memory_usage_mb=None,
        max_tokens=model.max_tokens,
        # mteb takes a list, and no tuple, for dimensions to choose from.
        embed_dim=list(model.dims) if len(model.dims) > 1 else next(iter(model.dims), None),
        license=model.license,
        open_weights=True,
        public_training_code=model.training_code,
        public_training_data=None,
        reference=model.reference or f"https://huggingface.co/{model.name}",
        # In mteb's sense: a prompt before the text counts.
        use_instructions=model.kind == "yes-no" or bool(_prompts(model)),
        training_datasets=None,
        adapted_from=model.base,
        citation=model.paper.bibtex_citation if model.paper else None,
        **_OF_A_KIND[model.kind](model),
    )


MODELS: dict[str, ModelMeta] = {name: metadata(model) for name, model in FACTS.items()}
