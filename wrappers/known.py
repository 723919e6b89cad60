"""What is known of a model: the prompts that it really puts before texts, its settings and weights as they are now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any

from mteb.models import SentenceTransformerEncoderWrapper
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

from coreb_tasks.wrappers.encode_once import digest
from coreb_tasks.wrappers.loaders import with_rows

if TYPE_CHECKING:
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader

_WRAPPERS_DEEP = 5  # more than mteb's wrappers nest


@dataclass
class _Watch:
    """A sentence-transformers model that is called in this thread, and the prompts that it put before texts so far.

    A probe ends the call there, before anything is computed.
    """

    model: Any
    prompts: list[str] = field(default_factory=list)
    probes: bool = False


class Probed(BaseException):  # no Exception, so that no model takes it for a fault of its own
    def __init__(self, prompt: str, options: str) -> None:
        super().__init__()
        self.prompt, self.options = prompt, options


_WATCHED: ContextVar[_Watch | None] = ContextVar("coreb_tasks_watched", default=None)


@contextmanager
def watched(model: Any, *, probes: bool = False) -> Iterator[list[str]]:
    """Collects the prompts that a sentence-transformers model within ``model`` puts before its texts.

    Every way to a prompt (mteb's tables, instructions, the model's own defaults) ends at ``preprocess``.
    """
    inner = _with_preprocess(model)
    watch = _Watch(inner, probes=probes)
    if inner is not None:
        _watch_preprocess(type(inner))
    token = _WATCHED.set(watch)
    try:
        yield watch.prompts
    finally:
        _WATCHED.reset(token)


def _watch_preprocess(kind: Any) -> None:
    """Let a class tell its prompts, once and for good: models encode in several threads, and are sent to processes."""
    original = kind.preprocess
    if hasattr(original, "tells_coreb_tasks"):
        return

    @wraps(original)
    def preprocess(self: Any, inputs: Any, *args: Any, prompt: str | None = None, **kwargs: Any) -> Any:
        watch = _WATCHED.get()
        if watch is not None and self is watch.model:
            if watch.probes:
                raise Probed(prompt or "", repr((args, sorted(kwargs.items()))))
            watch.prompts.append(prompt or "")
        return original(self, inputs, *args, prompt=prompt, **kwargs)

    preprocess.tells_coreb_tasks = True  # type: ignore[attr-defined]
    kind.preprocess = preprocess


def probe(call: Callable[..., Array], inputs: DataLoader[BatchedInput], model: Any) -> Probed | None:
    """The prompt and the options that a call would use; None where the model does not show them."""
    try:
        with watched(model, probes=True):
            call(with_rows(inputs, [0]), show_progress_bar=False)
    except Probed as probed:
        return probed
    return None


def known_inner(model: Any) -> Any:
    """The sentence-transformers model that one of mteb's own wrappers calls; None for any other model.

    Only these are known to do nothing by task but choose the prompt.
    """
    encode = getattr(type(model), "encode", None)
    inner = getattr(model, "__dict__", {}).get("model")
    known = encode in (SentenceTransformerEncoderWrapper.encode, InstructSentenceTransformerModel.encode)
    own = "preprocess" in getattr(inner, "__dict__", {})  # the user's, of which nothing is known
    return inner if known and not own and hasattr(type(inner), "preprocess") else None


def state_of(model: Any, *wrappers: Any) -> Hashable | None:
    """What else changes the numbers of a model of torch: all that it and its parts are made of, as they are now.

    Weights change in place while a model is trained or edited, and so do settings; hooks and methods that are put on a
    part count, too. None where they cannot be looked at (weights that are not in memory).
    """
    try:
        parts = [(name, *_part(part)) for name, part in model.named_modules()]
        weights = [(name, *_sums(weight)) for name, weight in chain(model.named_parameters(), model.named_buffers())]
        tokenizers = [_tokenizer(holder) for holder in (model, *wrappers)]
        settings = [_plain(vars(wrapper)) for wrapper in wrappers]
        return digest(repr(parts), repr(weights), repr(tokenizers), repr(settings), str(model.device))
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


# What a call itself sets. Private names are caches, or are looked at by way of torch.
_BY_CALL = {"training", "warnings_issued"}


def _part(part: Any) -> tuple[Any, ...]:
    hooks = [id(hook) for hooks in (part._forward_pre_hooks, part._forward_hooks) for hook in hooks.values()]
    config = getattr(part, "config", None)
    return type(part), _plain(vars(part)), hooks, repr(config)


def _plain(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings that can be told by their values, and functions that are put in the place of others."""
    plain = (bool, int, float, str, tuple, list, dict, set, type(None))
    return [
        (name, repr(value) if isinstance(value, plain) else str(id(value)))
        for name, value in sorted(values.items())
        if not (name.startswith("_") or name in _BY_CALL) and (isinstance(value, plain) or callable(value))
    ]


def _sums(weight: Any) -> tuple[Any, ...]:
    import torch

    flat = weight.detach().reshape(-1)
    sampled = flat[:: max(1, len(flat) // 8)][:8].float().tolist()  # in their order, which sums do not see
    sums = [float(flat.sum(dtype=torch.float64)), float(flat.abs().sum(dtype=torch.float64))]
    return str(weight.dtype), tuple(weight.shape), sums, sampled


def _tokenizer(holder: Any) -> tuple[Any, ...]:
    tokenizer = getattr(holder, "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    steps = [getattr(backend, step, None) for step in ("normalizer", "pre_tokenizer", "post_processor")]
    return repr(tokenizer), *(None if step is None else step.__getstate__() for step in steps)


def _with_preprocess(model: Any) -> Any:
    """The sentence-transformers model within mteb's wrappers, which may hold one another; None without one."""
    for _ in range(_WRAPPERS_DEEP):
        if hasattr(type(model), "preprocess"):
            return model
        held = getattr(model, "__dict__", {})
        model = held.get("model", held.get("_model"))
    return None
