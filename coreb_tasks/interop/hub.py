"""The hub layout that mteb's ``RetrievalDatasetLoader`` reads: configs of parquet, declared by a README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from coreb_tasks.facts import SPLIT

CONFIGS = ("corpus", "queries", "qrels")
JUDGMENT = ("query-id", "corpus-id", "score")  # the columns of judgments, as in BEIR's files


def write_tables(folder: Path, subset: str, corpus: Any, queries: Any, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write the configs of a subset.

    Args:
        folder: of the data set.
        subset: mteb's name of it.
        corpus, queries: ``datasets.Dataset`` with the columns ``id`` and ``text``.
        qrels: query id -> document id -> grade.
    """
    from datasets import Dataset

    rows = [(query, document, grade) for query, judged in qrels.items() for document, grade in judged.items()]
    judgments = dict(zip(JUDGMENT, zip(*rows, strict=True), strict=True))
    tables = (
        corpus.rename_column("id", "_id"),
        queries.rename_column("id", "_id"),
        Dataset.from_dict(judgments),
    )
    for config, table in zip(CONFIGS, tables, strict=True):
        file = folder / _file(_config(subset, config))
        file.parent.mkdir(parents=True, exist_ok=True)
        table.to_parquet(file)


def front_matter(subsets: Iterable[str], licence: str) -> str:
    """The head of the README.md: configs and licence, as the hub reads them."""
    from huggingface_hub import DatasetCardData

    names = [_config(subset, config) for subset in subsets for config in CONFIGS]
    data_files = {name: [{"split": SPLIT, "path": _file(name)}] for name in names}
    front = DatasetCardData(
        license="unknown" if licence == "not specified" else licence,
        task_categories=["text-retrieval"],
        tags=["mteb"],
        configs=[{"config_name": name, "data_files": files} for name, files in data_files.items()],
    )
    return f"---\n{front.to_yaml().strip()}\n---\n"


def _config(subset: str, config: str) -> str:
    return config if subset == "default" else f"{subset}-{config}"


def _file(config: str) -> str:
    return f"{config}/{SPLIT}.parquet"
