"""A task's data as a data set in hub layout, as mteb's ``RetrievalDatasetLoader`` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coreb_tasks.facts import SPLIT
from coreb_tasks.upstream.stock import StockTask

CONFIGS = ("corpus", "queries", "qrels")


def write_tables(folder: Path, task: StockTask) -> None:
    """Write the configs of every subset as parquet."""
    for subset, splits in task.dataset.items():
        for config, table in _tables(splits[SPLIT]).items():
            file = folder / _file(_config(subset, config))
            file.parent.mkdir(parents=True, exist_ok=True)
            table.to_parquet(file)


def card(task: StockTask) -> str:
    """The README.md: configs and licence for the hub, where the data come from and what was done to them."""
    from huggingface_hub import DatasetCardData

    names = [_config(subset, config) for subset in task.sizes for config in CONFIGS]
    data_files = {name: [{"split": SPLIT, "path": _file(name)}] for name in names}
    licence = task.metadata["license"]
    front = DatasetCardData(
        license="unknown" if licence == "not specified" else licence,
        task_categories=["text-retrieval"],
        tags=["mteb"],
        configs=[{"config_name": name, "data_files": files} for name, files in data_files.items()],
    )
    lines = [
        "---",
        front.to_yaml().strip(),
        "---",
        "",
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


def _tables(split: dict[str, Any]) -> dict[str, Any]:
    """Config -> its rows, as a ``datasets.Dataset``."""
    from datasets import Dataset

    rows = [
        (query, document, grade)
        for query, judged in split["relevant_docs"].items()
        for document, grade in judged.items()
    ]
    queries, documents, grades = zip(*rows, strict=True)
    return {
        "corpus": split["corpus"].rename_column("id", "_id"),
        "queries": split["queries"].rename_column("id", "_id"),
        "qrels": Dataset.from_dict({"query-id": queries, "corpus-id": documents, "score": grades}),
    }


def _config(subset: str, config: str) -> str:
    return config if subset == "default" else f"{subset}-{config}"


def _file(config: str) -> str:
    return f"{config}/{SPLIT}.parquet"
