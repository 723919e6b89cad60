"""A task's data as a data set in hub layout, as mteb's ``RetrievalDatasetLoader`` reads it."""

from __future__ import annotations

from pathlib import Path

from coreb_tasks.facts import SPLIT
from coreb_tasks.interop import hub
from coreb_tasks.upstream.stock import StockTask


def write_tables(folder: Path, task: StockTask) -> None:
    """Write the configs of every subset as parquet."""
    for subset, splits in task.dataset.items():
        split = splits[SPLIT]
        hub.write_tables(folder, subset, split["corpus"], split["queries"], split["relevant_docs"])


def card(task: StockTask, folder: Path) -> str:
    """The README.md: what is in the folder, for the hub, where the data come from and what was done to them."""
    licence = task.metadata["license"]
    lines = [
        hub.front_matter(folder, licence),
        f"# {task.name}",
        "",
        task.metadata["description"],
        "",
        f"The data are those of {task.origin}, in the layout of mteb's retrieval tasks. Licence: {licence}. "
        f"Paper: {task.metadata['reference']}",
        "",
        "| subset | documents | queries | judgments | relevant |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {subset} | {size.documents:,} | {size.queries:,} | {size.judgments:,} | {size.relevant:,} |"
            for subset, size in task.sizes.items()
        ),
        "",
        *(f"- {note}" for note in _notes(task)),
        "",
        "```bibtex",
        task.metadata["bibtex_citation"].strip(),
        "```",
        "",
    ]
    return "\n".join(lines)


def _notes(task: StockTask) -> list[str]:
    """What differs from the source, and what a reader of the scores must know."""
    benchmark = task.facts.benchmark
    grades = [f"{grade} ({meaning})" for grade, meaning in benchmark.grades.items()]
    level = benchmark.relevance_level
    notes = [f"Grades of the source: {'; '.join(grades)}. Here `score` is 1 for {level} and above, else 0."]
    if task.ignore_identical_ids:
        notes.append(
            "A query has the id of the one document that is no candidate for it, so that mteb's "
            "`ignore_identical_ids` takes that document off. The ids of the queries are unique within a subset only."
        )
    padded = max(size.padded for size in task.sizes.values())
    if padded:
        notes.append(
            f"White space around documents is kept as in the source ({padded:,} documents of a subset have some). mteb "
            "strips it before it encodes them, so that an encoder sees them without it (indentation of a first line)."
        )
    return notes
