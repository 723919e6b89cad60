"""The error of a run that cannot be scored."""

from __future__ import annotations


class SearchError(ValueError):
    """A model's run cannot be scored. Names task, query and document."""


def not_finite(task: str, query: str, document: str, score: float) -> SearchError:
    """The error for a score that is NaN or infinite."""
    return SearchError(
        f"{task}: the score of query {query!r} and document {document!r} is {score}. "
        "Scores must be finite: look at the two texts (empty, overlong) and at the model's precision."
    )
