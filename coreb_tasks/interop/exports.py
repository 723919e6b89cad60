"""A task's data as files: for BEIR, for TREC's tools, and in mteb's hub layout."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from coreb_tasks import __version__, rules
from coreb_tasks.data import RetrievalData, load_subsets
from coreb_tasks.facts import SPLIT, Task
from coreb_tasks.interop import hub
from coreb_tasks.interop.folders import new_folder
from coreb_tasks.interop.names import Names, names

T = TypeVar("T")
Progress = Callable[[Sequence[T], str], Iterable[T]]  # is handed rows and what they are, and hands the rows on

INFO = "coreb_tasks.json"
# Characters that some readers of lines take for the end of one: JSON may write them as escapes.
_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}


def export(
    task: Task,
    kind: str,
    out: Path,
    subsets: Sequence[str] | None = None,
    progress: Progress[Any] = lambda rows, what: rows,
) -> None:
    """Write the data of a task. Several subsets get a folder each (mteb: configs each).

    Every export has the file ``coreb_tasks.json``, which says what it is of, the relevance level, and the documents
    that are excluded from each query.

    Args:
        task: a retrieval task.
        kind: ``beir``, ``trec`` or ``mteb``.
        out: a new or an empty folder. After an error nothing is in it.
        subsets: some of the task's; None for all.
        progress: shows how far the writing is.

    Raises:
        ValueError: another format.
        DataError: data that cannot be read, or that the format cannot hold.
        OSError: the folder cannot be written to.
    """
    writers = {"beir": _write_beir, "trec": _write_trec, "mteb": _write_mteb}
    if kind not in writers:
        raise ValueError(f"unknown format {kind!r}; expected {', '.join(writers)}")
    write_subset = writers[kind]
    data = load_subsets(task, subsets or task.subsets)
    infos = {}
    with new_folder(out, last=INFO) as folder:
        for subset, of_subset in data.items():
            in_one_folder = kind == "mteb" or len(data) == 1
            home = folder if in_one_folder else folder / subset
            home.mkdir(exist_ok=True)
            known = names(of_subset, kind)
            write_subset(home, subset, of_subset, task.benchmark.relevance_level, known, progress)
            infos[subset] = _info(task, kind, subset, of_subset, known)
            if not in_one_folder:
                _write_json(home / INFO, infos[subset])
        if kind == "mteb":
            _write_lines(folder / "README.md", [_card(task, folder)])
        _write_json(folder / INFO, next(iter(infos.values())) if len(infos) == 1 else {"subsets": infos})


def _info(task: Task, kind: str, subset: str, data: RetrievalData, known: Names) -> dict[str, Any]:
    level = task.benchmark.relevance_level
    return {
        "task": task.name,
        "subset": subset,
        "release": task.release,
        "source": task.path,
        "commit": data.commit,
        "data_hash": data.data_hash,
        "relevance_level": level,
        "grades": {str(grade): meaning for grade, meaning in task.benchmark.grades.items()},
        "scoring": f"A grade of {level} or more counts as 1, every other as 0, in every metric.",
        "documents": len(data.corpus),
        "queries": len(data.queries),
        "judgments": sum(map(len, data.qrels.values())),
        "query_id_prefix": known.beir_prefix if kind == "beir" else "",
        "excluded": {
            known.queries[query]: sorted(known.documents[document] for document in documents)
            for query, documents in data.excluded.items()
        },
        "written_by": f"coreb-tasks {__version__}",
    }


def _write_beir(
    folder: Path, subset: str, data: RetrievalData, level: int, known: Names, progress: Progress[Any]
) -> None:
    documents = [{"_id": known.documents[d], "title": "", "text": text} for d, text in data.corpus.items()]
    _write_lines(folder / "corpus.jsonl", map(_json_line, progress(documents, f"{subset}: documents")))
    queries = [{"_id": known.queries[query], "text": text} for query, text in data.queries.items()]
    _write_lines(folder / "queries.jsonl", map(_json_line, progress(queries, f"{subset}: queries")))
    for ending, judgments in _judgments(data, level, known).items():
        file = folder / "qrels" / f"{SPLIT}{ending}.tsv"
        file.parent.mkdir(exist_ok=True)
        with file.open("w", encoding="utf-8", newline="") as out:
            rows_of_file = csv.writer(out, delimiter="\t", lineterminator="\n")
            rows_of_file.writerows([hub.JUDGMENT, *judgments])


def _write_trec(
    folder: Path, subset: str, data: RetrievalData, level: int, known: Names, progress: Progress[Any]
) -> None:
    documents = [{"id": known.documents[document], "contents": text} for document, text in data.corpus.items()]
    (folder / "corpus").mkdir()
    lines = map(_json_line, progress(documents, f"{subset}: documents"))
    _write_lines(folder / "corpus" / "documents.jsonl", lines)
    topics = [{"id": known.queries[query], "title": text} for query, text in data.queries.items()]
    _write_lines(folder / "topics.jsonl", map(_json_line, progress(topics, f"{subset}: queries")))
    for ending, judgments in _judgments(data, level, known).items():
        _write_lines(folder / f"qrels{ending}.txt", (f"{query} 0 {document} {g}" for query, document, g in judgments))


def _write_mteb(
    folder: Path, subset: str, data: RetrievalData, level: int, known: Names, progress: Progress[Any]
) -> None:
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    corpus, queries = (
        Dataset.from_dict({"id": list(texts), "text": list(texts.values())}) for texts in (data.corpus, data.queries)
    )
    hub.write_tables(folder, subset, corpus, queries, data.qrels)


def _judgments(data: RetrievalData, level: int, known: Names) -> dict[str, list[tuple[str, str, int]]]:
    """The judgments as in the data, and at the relevance level, by the ending of their file's name.

    Other tools count every grade above 0 in some or all metrics: only on the latter they give the protocol's.
    """
    return {
        ending: [
            (known.queries[query], known.documents[document], grade)
            for query, judged in qrels.items()
            for document, grade in judged.items()
        ]
        for ending, qrels in (("", data.qrels), ("-binary", rules.at_level(data.qrels, level)))
    }


def _card(task: Task, folder: Path) -> str:
    benchmark = task.benchmark
    grades = "".join(f"- {grade}: {meaning}\n" for grade, meaning in benchmark.grades.items())
    return (
        f"{hub.front_matter(folder, benchmark.license)}\n# {task.name}\n\n{task.description}\n\n"
        f"The data of `{task.path}`, split `{task.release}`, in the layout of mteb's retrieval tasks, with all grades:"
        f"\n\n{grades}\n"
        f"A grade of {benchmark.relevance_level} or more counts as 1, every other as 0, in every metric. mteb's own "
        "tasks know no such level: they count grades as gains, and every grade above 0 as relevant. `coreb-tasks "
        f"upstream` writes data for them. `{INFO}` holds the documents that are excluded from queries.\n\n"
        f"Paper: {benchmark.reference}. Licence: {benchmark.license}."
    )


def _json_line(row: Mapping[str, str]) -> str:
    return json.dumps(row, ensure_ascii=False).translate(_LINE_ENDS)


def _write_json(file: Path, content: Any) -> None:
    _write_lines(file, [json.dumps(content, ensure_ascii=False, indent=2).translate(_LINE_ENDS)])


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{line}\n" for line in lines)
