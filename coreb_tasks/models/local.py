"""Models in folders: told apart by their files, and known by the folder's name and a hash of what is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mteb.models import CrossEncoderWrapper, ModelMeta, SentenceTransformerEncoderWrapper
from mteb.similarity_functions import ScoringFunction

from coreb_tasks.wrappers.folder import content_hash, local_name

if TYPE_CHECKING:
    from mteb.models import MTEBModels

# Kind -> mteb's word for the type of model.
KINDS = {"encoder": "dense", "cross-encoder": "cross-encoder", "yes-no": "cross-encoder"}
MODULES, CONFIG, SETTINGS = "modules.json", "config.json", "config_sentence_transformers.json"
LOOKED_FOR = f"{MODULES} (sentence-transformers) or {CONFIG} (transformers)"
# What sentence-transformers 5 and later write of the class that a folder is of.
_BY_CLASS = {"SentenceTransformer": "encoder", "CrossEncoder": "cross-encoder"}
_BY_ARCHITECTURE = {"ForSequenceClassification": "cross-encoder", "ForCausalLM": "yes-no"}


class LocalModelError(ValueError):
    """A folder that cannot be run as a model. Says what it holds, what was expected and what to do."""


def is_model(folder: Path) -> bool:
    """Whether a folder holds one of the files that tell a model."""
    return (folder / MODULES).is_file() or (folder / CONFIG).is_file()


def local_meta(
    folder: Path, kind: str | None = None, *, trust_remote_code: bool = False, like: ModelMeta | None = None
) -> ModelMeta:
    """What mteb needs to run a folder.

    Args:
        folder: holds the model.
        kind: one of ``KINDS``; None tells it by the files.
        trust_remote_code: run the code in the folder.
        like: a model whose settings (prompts, lengths, loader) the folder is run with; it says the kind, too.

    Raises:
        LocalModelError: the folder holds no model, or none of that kind.
    """
    kind = kind_of(folder, kind) if like is None else _kind_of_a_copy(folder, like)
    try:
        revision = content_hash(folder, kind, trust_remote_code, *([] if like is None else [like.name]))
    except OSError as error:
        raise LocalModelError(f"{error.filename or folder}: cannot be read ({error})") from error
    identity = {"name": local_name(folder), "revision": revision}
    if like is not None:
        options = {**like.loader_kwargs, "trust_remote_code": True} if trust_remote_code else dict(like.loader_kwargs)
        if not trust_remote_code:
            options.pop("trust_remote_code", None)
        loader = partial(_load_copy, like.loader, str(folder.resolve()))
        return like.model_copy(
            update={**identity, "loader": loader, "loader_kwargs": options, "adapted_from": like.name}
        )
    return ModelMeta.create_empty(
        {
            **identity,
            "loader": partial(load_local, kind, str(folder.resolve()), trust_remote_code),
            "model_type": [KINDS[kind]],
            "framework": ["PyTorch"] if kind == "yes-no" else ["Sentence Transformers", "PyTorch"],
            "similarity_fn_name": _similarity(folder) if kind == "encoder" else None,
        }
    )


def _kind_of_a_copy(folder: Path, like: ModelMeta) -> str:
    if not is_model(folder):
        raise LocalModelError(f"{folder} is no model folder: expected {LOOKED_FOR} in it, found neither")
    if like.loader is None:
        raise LocalModelError(f"{like.name}: mteb cannot load it, so that a folder cannot be run like it")
    return f"like {like.name}"


def _load_copy(load: Callable[..., MTEBModels], folder: str, name: str, **options: Any) -> MTEBModels:
    return load(folder, **{**options, "revision": None})


def load_local(kind: str, folder: str, trust_remote_code: bool, name: str, **options: Any) -> MTEBModels:
    """Load a folder, without a question to the hub.

    Args:
        kind, folder, trust_remote_code: as for ``local_meta``, which binds them.
        name: the model's.
        options: mteb's; the revision among them is not the hub's.

    Raises:
        LocalModelError: the libraries cannot load it.
    """
    options = {key: value for key, value in options.items() if key != "revision"}
    try:
        if kind == "yes-no":
            from coreb_tasks.wrappers.yes_no import YesNoReranker

            return YesNoReranker(folder, trust_remote_code=trust_remote_code, **options)
        wrapper = CrossEncoderWrapper if kind == "cross-encoder" else SentenceTransformerEncoderWrapper
        return wrapper(folder, trust_remote_code=trust_remote_code, local_files_only=True, **options)
    except (OSError, ValueError, ImportError) as error:
        if "trust_remote_code" in str(error) and not trust_remote_code:
            raise LocalModelError(
                f"{folder}: the model needs code of its own; if you trust it, pass --trust-remote-code"
            ) from error
        reason = " ".join(str(error).split())
        raise LocalModelError(f"{folder}: cannot be loaded as the kind {kind} ({reason})") from error


def kind_of(folder: Path, kind: str | None = None) -> str:
    """The kind of model that a folder holds.

    Args:
        folder: holds the model.
        kind: where the user says it. The files must allow it, since a head that they lack would get random weights.

    Raises:
        LocalModelError: it holds none, or none of that kind.
    """
    if kind is not None and kind not in KINDS:
        close = get_close_matches(kind, KINDS, n=1)
        raise LocalModelError(
            f"unknown kind {kind}{f', did you mean {close[0]}?' if close else ''}; expected one of {', '.join(KINDS)}"
        )
    if not is_model(folder):
        raise LocalModelError(f"{folder} is no model folder: expected {LOOKED_FOR} in it, found neither")
    class_name, architectures = _class_name(folder), _architectures(folder)
    found = " and ".join(([class_name] if class_name else []) + architectures) or "no architecture"
    if class_name and class_name not in _BY_CLASS:
        raise LocalModelError(f"{folder} holds a {class_name}; expected one of {', '.join(_BY_CLASS)}")
    fitting = [_BY_CLASS[class_name]] if class_name else []
    fitting += [known for end, known in _BY_ARCHITECTURE.items() if any(name.endswith(end) for name in architectures)]
    if kind is None and not fitting:
        raise LocalModelError(
            f"{folder} holds {found}, by which no kind is told; expected {MODULES} or one of "
            f"{', '.join(f'*{end}' for end in _BY_ARCHITECTURE)}. To run it as an encoder, pass --kind encoder: "
            "sentence-transformers then takes the mean over the tokens"
        )
    kind = kind or fitting[0]
    if kind not in fitting and (kind != "encoder" or class_name):
        raise LocalModelError(f"{folder} holds {found}, which is no {kind}; it can be run as {' or '.join(fitting)}")
    if kind == "cross-encoder":
        _check_one_score(folder, architectures)
    return kind


def _class_name(folder: Path) -> str | None:
    """The class of sentence-transformers that a folder is of; None where it is of transformers alone."""
    named = _read(folder / SETTINGS, dict).get("model_type")
    if named is not None or not (folder / MODULES).is_file():
        return None if named is None else str(named)
    # Before 5, sentence-transformers did not name it.
    modules = [str(module.get("type")) for module in _read(folder / MODULES, list) if isinstance(module, dict)]
    return "SparseEncoder" if any("sparse_encoder" in module for module in modules) else "SentenceTransformer"


def _architectures(folder: Path) -> list[str]:
    return [str(name) for name in _read(folder / CONFIG, dict).get("architectures") or []]


def _check_one_score(folder: Path, architectures: list[str]) -> None:
    if not any(name.endswith("ForSequenceClassification") for name in architectures):
        return
    config = _read(folder / CONFIG, dict)
    labels = config.get("num_labels") or len(config.get("id2label") or "01")  # transformers' default is 2
    if labels != 1:
        raise LocalModelError(f"{folder} is a classifier with {labels} labels; expected 1, the score of a pair")


def _similarity(folder: Path) -> ScoringFunction:
    return ScoringFunction.from_str(_read(folder / SETTINGS, dict).get("similarity_fn_name") or "cosine")


def _read(file: Path, expected: type) -> Any:
    """What a JSON file holds; empty where there is none."""
    if not file.is_file():
        return expected()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LocalModelError(f"{file}: cannot be read ({error})") from error
    if not isinstance(content, expected):
        raise LocalModelError(f"{file}: expected a JSON {expected.__name__}, got {type(content).__name__}")
    return content
