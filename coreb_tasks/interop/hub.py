"""The hub layout that mteb's ``RetrievalDatasetLoader`` reads: configs of parquet, declared by a README.md."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from coreb_tasks.facts import SPLIT

CONFIGS = ("corpus", "queries", "qrels")
JUDGMENT = ("query-id", "corpus-id", "score")  # the columns of judgments, as in BEIR's files


def write_tables(folder: Path, subset: str, corpus: Any, queries: Any, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write the configs of a subset.

    Files have a hash of their content in their names: ``datasets`` keeps what it prepared of a folder by the folder's
    own name and the names of its files, and would hand out one data set for another.

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
    for kind, table in zip(CONFIGS, tables, strict=True):
        config = kind if subset == "default" else f"{subset}-{kind}"
        (folder / config).mkdir(parents=True, exist_ok=True)
        written = folder / config / f"{SPLIT}.parquet"
        table.to_parquet(written)
        digest = sha256(written.read_bytes()).hexdigest()
        written.rename(written.with_stem(f"{SPLIT}-{digest[:12]}"))


def front_matter(folder: Path, licence: str) -> str:
    """The head of the README.md: licence, and the configs that were written to a folder, as the hub reads them."""
    from huggingface_hub import DatasetCardData

    files = {file.parent.name: file.relative_to(folder).as_posix() for file in sorted(folder.glob("*/*.parquet"))}
    front = DatasetCardData(
        license="unknown" if licence == "not specified" else licence,
        task_categories=["text-retrieval"],
        tags=["mteb"],
        configs=[
            {"config_name": config, "data_files": [{"split": SPLIT, "path": file}]} for config, file in files.items()
        ],
    )
    return f"---\n{front.to_yaml().strip()}\n---\n"
