"""A pair of prompts of the user's own, one for queries and one for documents, for an encoder of any kind."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mteb.models import SentenceTransformerEncoderWrapper
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

from coreb_tasks.wrappers import loaders

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol, ModelMeta, MTEBModels
    from mteb.types import Array, BatchedInput, PromptType
    from sentence_transformers import SentenceTransformer
    from torch.utils.data import DataLoader

_SETTINGS = ("query_prompt", "document_prompt", "prompts")


class PromptError(ValueError):
    """A model that takes no pair of prompts. Says why."""


def prompted(meta: ModelMeta, query: str, document: str) -> ModelMeta:
    """A model with a pair of prompts: it loads with them, and its results have a folder of their own.

    Raises:
        PromptError: the model is a reranker. One that turns out to be no encoder raises it when it is loaded.
    """
    if meta.is_cross_encoder:
        raise _no_encoder(meta.name, "a reranker, which reads query and document as one text")
    given = json.dumps([query, document]).encode()
    settings = {
        "query_prompt": query,
        "document_prompt": document,
        # mteb makes a folder's name of these settings. It takes "q: " and "q_ " for one and leaves empty strings out,
        # and prompts can be of any length and have line breaks; of a dict it takes a hash.
        "prompts": {"sha256": hashlib.sha256(given).hexdigest()},
    }
    loader = None if meta.loader is None else partial(load_with_prompts, meta.loader, (query, document))
    return meta.model_copy(
        update={"loader": loader, "experiment_kwargs": {**(meta.experiment_kwargs or {}), **settings}}
    )


def load_with_prompts(
    loader: Callable[..., MTEBModels], prompts: tuple[str, str], name: str, /, **options: Any
) -> EncoderProtocol:
    """Load a model as its own loader does, and give it prompts. mteb hands the settings above to loaders, too.

    Raises:
        PromptError: the model is no encoder.
    """
    model = loader(name, **{key: value for key, value in options.items() if key not in _SETTINGS})
    return with_prompts(model, *prompts, name=name)


def with_prompts(model: Any, query: str, document: str, name: str = "the model") -> EncoderProtocol:
    """The encoder with ``query`` and ``document`` before its texts.

    They take the place of the prompts that a sentence-transformers model has; any other model gets them as part of
    its texts.

    Raises:
        PromptError: the model is no encoder.
    """
    # By their methods: mteb's protocols want the metadata, which a model gets only after it is loaded.
    if hasattr(model, "index") and hasattr(model, "search"):
        raise _no_encoder(name, "a model with a search of its own")
    if not hasattr(model, "encode"):
        raise _no_encoder(name, "a reranker" if hasattr(model, "predict") else f"a {type(model).__name__}")
    prompts = {"query": query, "document": document}
    encode = type(model).encode
    # mteb's own wrappers (by their module: there are more in newer versions) are told, so that its log is right, too.
    if encode.__module__ == SentenceTransformerEncoderWrapper.__module__:
        model.model_prompts = prompts
        return model
    if encode is InstructSentenceTransformerModel.encode:
        model.get_task_instruction = partial(_instruction, prompts)
        model.apply_instruction_to_passages = True
        return model
    return PromptedEncoder(model, prompts)


def _no_encoder(name: str | None, what: str) -> PromptError:
    return PromptError(
        f"{name} is {what}; expected an encoder, which alone has a prompt for queries and one for documents"
    )


def _instruction(prompts: Mapping[str, str], task_metadata: Any, prompt_type: PromptType | None) -> str:
    return prompts[prompt_type.value] if prompt_type else ""


class PromptedEncoder:
    """An encoder of any other kind, with a prompt before the texts of each side.

    Attributes:
        added_prompts: side (query, document) -> what is put before its texts here, and not by the model itself.
    """

    def __init__(self, model: EncoderProtocol, prompts: Mapping[str, str]) -> None:
        self.model = model
        self.given = prompts
        self.added_prompts = {} if _sentence_transformer(model) else prompts

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self.model.mteb_model_meta

    @mteb_model_meta.setter
    def mteb_model_meta(self, meta: ModelMeta) -> None:
        self.model.mteb_model_meta = meta

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # asked for while being copied
            raise AttributeError(name)
        return getattr(self.model, name)

    def encode(
        self, inputs: DataLoader[BatchedInput], *, prompt_type: PromptType | None = None, **kwargs: Any
    ) -> Array:
        prompt = self.given[prompt_type.value] if prompt_type else ""
        inner, model = _sentence_transformer(self.model), self.model
        if inner is not None:
            model = copy.copy(model)
            model.model = _OnePrompt(inner, prompt)
        elif prompt:
            inputs = loaders.prompted(inputs, prompt)
        return model.encode(inputs, prompt_type=prompt_type, **kwargs)

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        return self.model.similarity_pairwise(embeddings1, embeddings2)


class _OnePrompt:
    """A sentence-transformers model that puts one prompt before every text, whichever its caller asks for.

    The caller may do more than mteb's wrappers (choose an adapter, cut vectors), and goes on doing it.
    """

    def __init__(self, model: SentenceTransformer, prompt: str) -> None:
        self.model = model
        self.prompt = prompt

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # asked for while being copied
            raise AttributeError(name)
        return getattr(self.model, name)

    def encode(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.encode(*args, **self._instead(kwargs))

    def encode_query(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.encode_query(*args, **self._instead(kwargs))

    def encode_document(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.encode_document(*args, **self._instead(kwargs))

    def _instead(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return {**kwargs, "prompt_name": None, "prompt": self.prompt}


def _sentence_transformer(model: Any) -> SentenceTransformer | None:
    from sentence_transformers import SentenceTransformer

    inner = getattr(model, "__dict__", {}).get("model")
    return inner if isinstance(inner, SentenceTransformer) else None
