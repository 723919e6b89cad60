"""What was measured on the data (pins, descriptive statistics), and what papers state where it could not be."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_FOLDER = Path(__file__).parent


class Pin(NamedTuple):
    """What one config of a data set must hold: its number of rows, and the sha256 of what is scored of them.

    None where it is not known: the data could not be read when the pins were taken.
    """

    rows: int | None = None
    sha256: str | None = None


class Sizes(NamedTuple):
    """How large a task is; ``stated_in`` is the paper that says so, or None where it was measured."""

    documents: int
    queries: int
    relevant: int
    stated_in: str | None


class Published(NamedTuple):
    """The scores that a paper states of a model on a benchmark.

    Attributes:
        source: the paper.
        digits: the digits that its scores are stated with.
        model: the name that it gives the model.
        n_parameters: how many it says that the model has; None where it does not.
        means: its means over the tasks: ``macro`` or ``micro`` -> metric -> score.
        scores: task -> subset -> key -> score, with the keys of a result.
    """

    source: str
    digits: int
    model: str
    n_parameters: int | None
    means: dict[str, dict[str, float]]
    scores: dict[str, dict[str, dict[str, Any]]]


def published(benchmark: str) -> Iterator[Published]:
    """The published scores on a benchmark (``CoREB(v202603)``); none where no paper states any."""
    for file in sorted((_FOLDER / "published").glob("*.json")):
        content = _read(str(file))
        for row in content["benchmarks"].get(benchmark, []):
            yield Published(content["source"], content["digits"], **{"means": {}, **row})


def pins(path: str, release: str) -> dict[str, Pin]:
    """The pins of a data set (hub path and split), by config; empty where none are recorded."""
    return {config: Pin(**pin) for config, pin in _read("pins.json").get(path, {}).get(release, {}).items()}


def descriptive_statistics_path(task: str) -> Path:
    """Where a retrieval task's statistics in mteb's format lie."""
    return _FOLDER / "descriptive_stats" / "Retrieval" / f"{task}.json"


def descriptive_statistics(task: str) -> dict[str, Any]:
    """A retrieval task's statistics of the split ``test``, in mteb's format.

    Where the data could not be read they are what the paper states, marked by the key ``stated_in``.
    """
    test: dict[str, Any] = _read(str(descriptive_statistics_path(task)))["test"]
    return test


def sizes(task: str) -> Sizes:
    """Sizes of a retrieval task, from its descriptive statistics."""
    test = descriptive_statistics(task)
    subsets = list(test.get("hf_subset_descriptive_stats", {}).values())
    # mteb counts a corpus that subsets share once for each of them.
    shared = len({str(subset["documents_text_statistics"] or subset["num_documents"]) for subset in subsets}) == 1
    documents = subsets[0]["num_documents"] if shared else test["num_documents"]
    relevant = test["relevant_docs_statistics"]["num_relevant_docs"]
    return Sizes(documents, test["num_queries"], relevant, test.get("stated_in"))


def num_queries(task: str, subset: str) -> int:
    """Number of queries of a retrieval task's subset, from its descriptive statistics."""
    test = descriptive_statistics(task)
    return int(test.get("hf_subset_descriptive_stats", {}).get(subset, test)["num_queries"])


@cache
def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return content
