"""BM25 Okapi: the lexical baseline of 1C-Ebench (arXiv:2608.19957)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.models import ModelMeta

if TYPE_CHECKING:
    from mteb.types import CorpusDatasetType, QueryDatasetType, RetrievalOutputType, TopRankedDocumentsType

K1 = 1.2
B = 0.75
EPSILON = 0.25  # rank_bm25's


def tokenize(text: str) -> list[str]:
    """Words in lower case, no stop words, no stemmer: the same for queries and documents."""
    return re.findall(r"\w+", text.lower())


class BM25Okapi:
    """Exact BM25 over the whole corpus, on bm25s.

    The score is that of rank_bm25's ``BM25Okapi``, which the paper's name for its baseline is: for each word of the
    query, as often as it stands there, ``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))`` with
    ``idf = ln((N - df + 0.5) / (df + 0.5))``.

    That idf is negative for a word of more than half of the documents. bm25s's own method "robertson" takes 0 for it
    (and leaves out the constant k1 + 1); rank_bm25 takes ``epsilon`` times the mean idf of all words, before that
    replacement, so that such words still count a little. Here that rule holds, which bm25s gets by scaling the column
    of each word in its index; ``epsilon=0`` gives the ranking of "robertson". Scores are float64.

    Attributes:
        mteb_model_meta: metadata; other parameters than the paper's count as an experiment, so that their results
            have a folder of their own.
    """

    def __init__(
        self,
        model_name: str = "coreb-tasks/bm25-okapi",
        revision: str | None = "1",
        device: str | None = None,
        *,
        k1: float = K1,
        b: float = B,
        epsilon: float = EPSILON,
    ) -> None:
        """Set the parameters.

        Args:
            model_name, revision: for the metadata.
            device: not used.
            k1: how slowly the count of a word saturates.
            b: how much a document's length counts, 0 to 1.
            epsilon: idf of a word of more than half of the documents, as a share of the mean idf.
        """
        self.k1, self.b, self.epsilon = k1, b, epsilon
        given, usual = {"k1": k1, "b": b, "epsilon": epsilon}, {"k1": K1, "b": B, "epsilon": EPSILON}
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": model_name,
                "revision": revision,
                "loader": type(self),
                "model_type": ["sparse"],
                "experiment_kwargs": {key: value for key, value in given.items() if value != usual[key]} or None,
            }
        )
        self._position: dict[str, int] | None = None

    def index(self, corpus: CorpusDatasetType, **kwargs: Any) -> None:
        """Index documents: their text, after their title where they have one.

        Raises:
            ImportError: bm25s is not installed.
        """
        texts = dict(zip(corpus["id"], _texts(corpus), strict=True))
        # Descending, so that of documents with one score the first position has the last id, as trec_eval ranks.
        self._ids: list[str] = sorted(texts, reverse=True)
        self._position = {document: position for position, document in enumerate(self._ids)}
        documents = [tokenize(texts[document]) for document in self._ids]
        self._word_ids: dict[str, int] = {}
        rows = [[self._word_ids.setdefault(word, len(self._word_ids)) for word in words] for words in documents]
        self._index: Any = self._build(rows) if self._word_ids else None

    def search(
        self,
        queries: QueryDatasetType,
        *,
        top_k: int,
        top_ranked: TopRankedDocumentsType | None = None,
        **kwargs: Any,
    ) -> RetrievalOutputType:
        """The best documents of each query, or the scores of given ones.

        Args:
            queries: rows with ``id`` and ``text``.
            top_k: how many documents of the corpus; more than it has is all of it.
            top_ranked: query id -> candidates. Then these are scored and no others, whatever their rank; a query
                without an entry has none.

        Returns:
            Query id -> document id -> score, best first, ties by document id descending.

        Raises:
            ValueError: nothing is indexed, or a candidate is not in the corpus.
        """
        if self._position is None:
            raise ValueError("BM25Okapi has no corpus to search: call index(corpus) first.")
        run: RetrievalOutputType = {}
        for query, text in zip(queries["id"], queries["text"], strict=True):
            scores = self._scores(tokenize(text))
            if top_ranked is None:
                run[query] = self._ranked(scores, _first(scores, top_k))
            else:
                among = self._positions(query, top_ranked.get(query, ()))
                run[query] = self._ranked(scores, among[_first(scores[among], len(among))])
        return run

    def _build(self, rows: list[list[int]]) -> Any:
        try:
            bm25s: Any = importlib.import_module("bm25s")
        except ImportError as error:
            raise ImportError("BM25Okapi needs the package bm25s: pip install 'coreb-tasks[bm25]'.") from error
        # Lucene's idf is above 0 for every word, so that it can be exchanged for ours. "atire" is the tf part above.
        index = bm25s.BM25(k1=self.k1, b=self.b, method="atire", idf_method="lucene", dtype="float64")
        index.index((rows, self._word_ids), create_empty_token=False, show_progress=False)
        document_counts = np.diff(index.scores["indptr"])
        odds = (len(rows) - document_counts + 0.5) / (document_counts + 0.5)
        factors = _floored(np.log(odds), self.epsilon) / np.log1p(odds)
        index.scores["data"] = index.scores["data"] * np.repeat(factors, document_counts)
        return index

    def _scores(self, words: Sequence[str]) -> Any:
        """Scores of all documents, float64 of shape (documents,)."""
        known = [self._word_ids[word] for word in words if word in self._word_ids]
        return self._index.get_scores_from_ids(known) if known else np.zeros(len(self._ids))

    def _positions(self, query: str, candidates: Sequence[str]) -> Any:
        positions = self._position or {}
        unknown = [document for document in candidates if document not in positions]
        if unknown:
            raise ValueError(
                f"candidate {unknown[0]!r} of query {query!r} is not in the corpus ({len(unknown)} of them are not): "
                "candidates and corpus must be of the same data."
            )
        return np.array(sorted({positions[document] for document in candidates}), dtype=np.int64)

    def _ranked(self, scores: Any, positions: Any) -> dict[str, float]:
        return {self._ids[position]: float(scores[position]) for position in positions}


def _texts(corpus: Mapping[str, Any]) -> list[str]:
    titles = corpus["title"] if "title" in corpus.column_names else None  # type: ignore[attr-defined]
    if titles is None:
        return list(corpus["text"])
    return [f"{title} {text}" if title else text for title, text in zip(titles, corpus["text"], strict=True)]


def _floored(idf: Any, epsilon: float) -> Any:
    """rank_bm25's rule for words of more than half of the documents."""
    return np.where(idf < 0, epsilon * idf.mean(), idf)


def _first(scores: Any, count: int) -> Any:
    """Positions of the highest scores, best first, ties by position, also at the cut."""
    if count < len(scores):
        lowest = np.partition(scores, len(scores) - count)[len(scores) - count] if count > 0 else np.inf
        kept = np.flatnonzero(scores >= lowest)
    else:
        kept = np.arange(len(scores))
    return kept[np.argsort(-scores[kept], kind="stable")][:count]
