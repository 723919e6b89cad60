"""What is known of a model: the prompts that it really puts before texts, its settings and weights as they are now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
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
    inner = with_preprocess(model)
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
    as_made = not {"preprocess", "encode", "encode_query", "encode_document", "forward"} & vars(inner or object).keys()
    return inner if known and as_made and hasattr(type(inner), "preprocess") else None


_SAMPLED = 8  # numbers of each weight that a state looks at


def state_of(model: Any) -> Hashable | None:
    """What else changes the numbers of a model of torch: its settings, and its weights as they are now.

    Weights change in place while a model is trained, which their version counts; a sample of them shows changes that
    go past it. None where they cannot be looked at (weights that are not in memory).
    """
    try:
        return _state(model)
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def _state(model: Any) -> Hashable:
    settings = (
        repr(model),
        repr(getattr(model, "tokenizer", None)),
        getattr(model, "truncate_dim", None),
        str(model.device),
    )
    weights = [
        (name, str(weight.dtype), _version(weight), *_sample(weight)) for name, weight in model.state_dict().items()
    ]
    return digest(*settings[:2], repr(settings[2:]), repr(weights))


def _version(weight: Any) -> int:
    try:
        return int(weight._version)
    except RuntimeError:  # weights that were made in inference mode have none
        return 0


def _sample(weight: Any) -> list[float]:
    flat = weight.detach().reshape(-1)
    sampled: list[float] = flat[:: max(1, len(flat) // _SAMPLED)][:_SAMPLED].float().tolist()
    return sampled


def with_preprocess(model: Any) -> Any:
    """The sentence-transformers model within mteb's wrappers, which may hold one another; None without one."""
    for _ in range(_WRAPPERS_DEEP):
        if hasattr(type(model), "preprocess"):
            return model
        held = getattr(model, "__dict__", {})
        model = held.get("model", held.get("_model"))
    return None
