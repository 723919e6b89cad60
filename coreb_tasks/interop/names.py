"""Ids as the formats write them: all distinct, all readable back."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote

from coreb_tasks.data import DataError, RetrievalData

QUERY_PREFIX = "query-"
# Readers of TREC files split lines at white space (which kinds of it, they do not agree on) and may take quotes away.
_UNSAFE_IN_TREC = re.compile(r"[\s\"'%\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def escape(name: str) -> str:
    """An id for a TREC file: white space, control characters, quotes and % as in URLs, the rest as it is."""
    return _UNSAFE_IN_TREC.sub(lambda unsafe: quote(unsafe[0], safe=""), name)


def unescape(name: str) -> str:
    """The id that ``escape`` wrote; what it never writes stays as it is."""
    original = unquote(name)
    return original if escape(original) == name else name


@dataclass(frozen=True)
class Names:
    """The ids of a subset's queries and documents in the files of a format.

    Attributes:
        queries, documents: our id -> the id in the file.
        beir_prefix: what the ids of all queries begin with in BEIR's files and not in the data, or "".
    """

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    beir_prefix: str

    @cached_property
    def query_of(self) -> dict[str, str]:
        """Id in a file -> our id. The ids of the data, and those of other formats' exports, are understood too."""
        known = {form: query for query in self.queries for form in self._forms(query)}
        return known | {name: query for query, name in self.queries.items()}

    def _forms(self, query: str) -> Iterator[str]:
        for form in (escape(query), query):
            yield from (self.beir_prefix + form, form)

    @cached_property
    def document_of(self) -> dict[str, str]:
        """As ``query_of``, for documents."""
        known = {form: document for document in self.documents for form in (escape(document), document)}
        return known | {name: document for document, name in self.documents.items()}


def names(data: RetrievalData, kind: str) -> Names:
    """The ids of some data in files of a format.

    TREC: escaped. BEIR: queries get a prefix where one has the id of a document, since BEIR's evaluation drops a
    document that has its query's id. MTEB: as they are.

    Raises:
        DataError: an id that the format cannot hold.
    """
    prefix = _beir_prefix(data)
    if kind == "trec":
        return Names({query: escape(query) for query in data.queries}, {d: escape(d) for d in data.corpus}, prefix)
    if kind == "beir":
        _refuse_control_characters([*data.queries, *data.corpus])
    before = prefix if kind == "beir" else ""
    return Names({query: before + query for query in data.queries}, {d: d for d in data.corpus}, prefix)


def _beir_prefix(data: RetrievalData) -> str:
    """With it no query has the id of a document, or that of another query without it."""
    if data.queries.keys().isdisjoint(data.corpus):
        return ""
    prefix = QUERY_PREFIX
    while any(prefix + query in known for query in data.queries for known in (data.corpus, data.queries)):
        prefix += QUERY_PREFIX
    return prefix


def _refuse_control_characters(ids: Iterable[str]) -> None:
    for name in ids:
        if any(unicodedata.category(character) == "Cc" for character in name):
            raise DataError(
                "BEIR",
                f"the id {name!r} has a control character, which BEIR's files of judgments cannot hold",
                "Export as trec, which escapes it, or as mteb.",
            )
