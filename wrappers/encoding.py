"""Overrides of encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mteb.types import PromptType

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol, ModelMeta
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader


class VerbatimDocuments:
    """An encoder that gets documents as they stand in the corpus.

    mteb strips the white space around a document (not around a query), which takes the first line's indentation off
    code. mteb hands the untouched text along as ``body``; corpora here have no titles, so that it is the whole text.
    """

    def __init__(self, model: EncoderProtocol) -> None:
        self.model = model

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self.model.mteb_model_meta

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def encode(
        self, inputs: DataLoader[BatchedInput], *, prompt_type: PromptType | None = None, **kwargs: Any
    ) -> Array:
        if prompt_type == PromptType.document:
            inputs = _with_body_as_text(inputs)
        return self.model.encode(inputs, prompt_type=prompt_type, **kwargs)

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        return self.model.similarity_pairwise(embeddings1, embeddings2)


def _with_body_as_text(inputs: DataLoader[BatchedInput]) -> DataLoader[BatchedInput]:
    from torch.utils.data import DataLoader

    documents: Any = inputs.dataset
    texts = documents.add_column("verbatim", documents["body"]).remove_columns("text")
    return DataLoader(
        texts.rename_column("verbatim", "text"),
        batch_size=inputs.batch_size,
        collate_fn=inputs.collate_fn,
        num_workers=inputs.num_workers,
    )
