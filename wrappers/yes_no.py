"""Rerankers that answer yes or no: a causal language model judges a query and a document."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.models import ModelMeta

from coreb_tasks.wrappers.folder import content_hash, local_name

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.types import Array, BatchedInput, PromptType
    from torch.utils.data import DataLoader

logger = logging.getLogger(__name__)

QWEN3_SYSTEM = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".'
)
QWEN3_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
MAX_LENGTH = 8192  # tokens, Qwen3-Reranker's own

_PREFIX = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n"
_BODY = "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
# An empty thought, so that the answer is the next token.
_SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
_SINGLE_TOKENS = ("yes", "no", "<|im_start|>", "<|im_end|>", "<think>", "</think>")


class YesNoReranker:
    """A cross-encoder whose score is the probability of "yes" against "no" as the next token.

    The recipe of Qwen3-Reranker and of CoREB (arXiv:2605.04615, appendix B.3): the chat template of Qwen3 is written
    out, and the softmax over the two answers is taken in float32. The instruction is the task's query prompt.

    Attributes:
        mteb_model_meta: metadata with the model's name and revision; what differs from the defaults counts as an
            experiment, so that its results have a folder of their own.
    """

    def __init__(
        self,
        model_name: str,
        revision: str | None = None,
        device: str | None = None,
        *,
        max_length: int = MAX_LENGTH,
        system: str = QWEN3_SYSTEM,
        instruction: str | None = None,
        trust_remote_code: bool = False,
        **model_kwargs: Any,
    ) -> None:
        """Load model and tokenizer.

        Args:
            model_name: hub name or local folder.
            revision: of both, on the hub; None for the newest.
            device: None for the first of cuda, mps and cpu that there is.
            max_length: tokens of the whole prompt; what is more is cut off the end of the document.
            system: system text of the prompt.
            instruction: for every task; None for the task's own query prompt, else Qwen3's.
            trust_remote_code: let code from the model's repository run. A warning says so.
            model_kwargs: for the model's ``from_pretrained``, such as ``dtype`` ("bfloat16").

        Raises:
            ValueError: the tokenizer has no single token for an answer or a marker of the prompt, or ``max_length``
                has no room for a query and a document.
        """
        if trust_remote_code:
            warn_of_remote_code(model_name, revision)
        # By import_module, as types of transformers take minutes to check.
        transformers: Any = importlib.import_module("transformers")
        source = {"revision": revision or "main", "trust_remote_code": trust_remote_code}
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(model_name, truncation_side="right", **source)
        self.prefix = self._encode(_PREFIX.format(system=system))
        self.suffix = self._encode(_SUFFIX)
        self._yes, self._no = self._check_tokenizer(model_name)
        self.room = self._check_room(max_length)
        self.device = device or _default_device()
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model_name, **source, **model_kwargs)
        self.model.to(self.device).eval()
        self.instruction = instruction
        self._measures: dict[str, Any] = {}
        given = {"max_length": max_length, "system": system, "instruction": instruction, **model_kwargs}
        self.mteb_model_meta = _meta(type(self), model_name, revision, given)

    def predict(
        self,
        inputs1: DataLoader[BatchedInput],
        inputs2: DataLoader[BatchedInput],
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        prompt_type: PromptType | None = None,
        batch_size: int = 32,
        show_progress_bar: bool = True,
        **kwargs: Any,
    ) -> Array:
        """Scores of pairs, in their order.

        Args:
            inputs1, inputs2: batches of queries and of their documents (``text``), one document a query.
            task_metadata: gives the instruction.
            batch_size: pairs that the model sees at once; the scores do not depend on it.
            hf_split, hf_subset, prompt_type, kwargs: not used.

        Returns:
            Probabilities of "yes", float32 of shape (pairs,).

        Raises:
            ValueError: there are not as many documents as queries.
        """
        from tqdm.auto import tqdm  # type: ignore[import-untyped]

        self._measures = {}
        pairs = list(zip(_texts(inputs1), _texts(inputs2), strict=True))
        instruction = self.instruction_of(task_metadata)
        # Pairs of like length share a batch, so that little is padding; the longest come first, so that memory runs
        # out at the start or not at all.
        order = sorted(range(len(pairs)), key=lambda i: -sum(map(len, pairs[i])))
        scores = np.empty(len(pairs), dtype=np.float32)
        cut = np.zeros(len(pairs), dtype=bool)
        for start in tqdm(range(0, len(pairs), batch_size), desc="Judging pairs", disable=not show_progress_bar):
            batch = order[start : start + batch_size]
            bodies = [_BODY.format(instruction=instruction, query=pairs[i][0], document=pairs[i][1]) for i in batch]
            encoded = self._bodies(bodies)
            cut[batch] = [len(body) > self.room for body in encoded]
            scores[batch] = self._probabilities([self.prefix + body[: self.room] + self.suffix for body in encoded])
        self._measures = {"truncated_pairs": cut}
        return scores

    @property
    def measures(self) -> dict[str, Any]:
        """What the last ``predict`` found of each pair: ``truncated_pairs``, whether it was cut."""
        return self._measures

    @property
    def measured(self) -> dict[str, float]:
        """Shares of the pairs of the last ``predict``, by the names of ``measures``."""
        return {name: float(np.mean(values)) if len(values) else 0.0 for name, values in self.measures.items()}

    def instruction_of(self, task_metadata: TaskMetadata) -> str:
        """The instruction for a task: the one that was given, the task's query prompt, else Qwen3's default."""
        prompt = task_metadata.prompt
        own = prompt if isinstance(prompt, str) else (prompt or {}).get("query")
        return self.instruction or own or QWEN3_INSTRUCTION

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def _bodies(self, texts: list[str]) -> list[list[int]]:
        """Token ids; of a body that is too long, one more than there is room for."""
        options = {"add_special_tokens": False, "truncation": True, "max_length": self.room + 1}
        return list(self.tokenizer(texts, **options)["input_ids"])

    def _probabilities(self, rows: Sequence[list[int]]) -> Any:
        """Probabilities of "yes" after each row of token ids, shape (rows,)."""
        import torch

        # On the left, so that the last position is the answer's in every row. Positions count from a row's own start,
        # so that padding changes nothing.
        width = max(map(len, rows))
        ids = torch.tensor([[self._padding] * (width - len(row)) + row for row in rows], device=self.device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self.device)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        with torch.inference_mode():
            logits = self.model(**inputs, logits_to_keep=1, use_cache=False).logits[:, -1]
            answers = logits[:, [self._no, self._yes]].float()
            return answers.softmax(dim=1)[:, 1].cpu().numpy()

    @property
    def _padding(self) -> int:
        known = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id)
        return next((token for token in known if token is not None), 0)  # masked: any token will do

    def _check_tokenizer(self, model_name: str) -> tuple[int, int]:
        tokens = {text: self._encode(text) for text in _SINGLE_TOKENS}
        # A tokenizer can have one token for all that it does not know.
        wrong = [text for text, ids in tokens.items() if len(ids) != 1 or self.tokenizer.decode(ids) != text]
        if wrong:
            raise ValueError(
                f"{model_name}: its tokenizer has no single token for {', '.join(map(repr, wrong))}; expected one for "
                f"each of {', '.join(map(repr, _SINGLE_TOKENS))}, as in Qwen3-Reranker. Give a model of that kind, or "
                "load this one as a cross-encoder (sentence_transformers.CrossEncoder)."
            )
        return tokens["yes"][0], tokens["no"][0]

    def _check_room(self, max_length: int) -> int:
        """Tokens that are left for instruction, query and document."""
        around = len(self.prefix) + len(self.suffix)
        if max_length <= around:
            raise ValueError(
                f"max_length={max_length} has no room for a query and a document: the prompt around them takes "
                f"{around} tokens. Expected more than that (Qwen3-Reranker: {MAX_LENGTH})."
            )
        return max_length - around


def warn_of_remote_code(repository: str, revision: str | None) -> None:
    """Log that code of a model's repository is about to run here, and of which revision."""
    which = f"at revision {revision}" if revision else "the newest, not pinned"
    logger.warning("Loading %s runs code from its repository on this machine (%s).", repository, which)


def _texts(inputs: DataLoader[BatchedInput]) -> list[str]:
    return [text for batch in inputs for text in batch["text"]]


def _default_device() -> str:
    """As in mteb's rerankers."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _meta(loader: Any, model_name: str, revision: str | None, given: dict[str, Any]) -> ModelMeta:
    usual = {"max_length": MAX_LENGTH, "system": QWEN3_SYSTEM, "instruction": None}
    unusual = {key: value for key, value in given.items() if key not in usual or value != usual[key]}
    folder = Path(model_name)
    return ModelMeta.create_empty(
        {
            "name": local_name(folder) if folder.is_dir() else model_name,
            "revision": content_hash(folder) if folder.is_dir() else revision,
            "loader": loader,
            "model_type": ["cross-encoder"],
            "use_instructions": True,
            "experiment_kwargs": {key: str(value) for key, value in unusual.items()} or None,
        }
    )
