"""Scoring of a large run against reading it: 10,000 queries x 1,000 results, as TREC and as BEIR's JSON.

    python benchmarks/scoring.py [QUERIES RESULTS]

Prints seconds and the ratio of the whole (reading and scoring) to reading alone, measured one after the other.
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path

from coreb_tasks import scoring
from coreb_tasks.data import RetrievalData
from coreb_tasks.facts import TASKS
from coreb_tasks.interop.runs import read_run

TASK = TASKS["CPRet-T2C"]
DOCUMENTS = 42_000


def synthetic(queries: int) -> RetrievalData:
    """Data of the size of CPRet's largest task: nine relevant documents a query."""
    chance = random.Random(0)  # noqa: S311
    documents = [f"document-{number:05}" for number in range(DOCUMENTS)]
    names = [f"q-{number:05}" for number in range(queries)]
    qrels = {name: dict.fromkeys(sorted(chance.sample(documents, 9)), 1) for name in names}
    return RetrievalData(dict.fromkeys(documents, "text"), dict.fromkeys(names, "text"), qrels, data_hash="0" * 64)


def write_runs(folder: Path, data: RetrievalData, results: int) -> list[Path]:
    chance = random.Random(1)  # noqa: S311
    documents = list(data.corpus)
    trec, beir = folder / "run.trec", folder / "run.json"
    with trec.open("w") as lines, beir.open("w") as objects:
        for number, query in enumerate(data.queries):
            found = sorted(
                ((chance.random(), document) for document in chance.sample(documents, results)), reverse=True
            )
            lines.writelines(f"{query} Q0 {d} {rank} {score} tag\n" for rank, (score, d) in enumerate(found, start=1))
            objects.write("{" if number == 0 else ", ")
            objects.write(f"{json.dumps(query)}: {json.dumps({document: score for score, document in found})}")
        objects.write("}")
    return [trec, beir]


def main() -> None:
    queries, results = map(int, sys.argv[1:]) if sys.argv[1:] else (10_000, 1_000)
    data = synthetic(queries)
    with tempfile.TemporaryDirectory() as folder:
        for file in write_runs(Path(folder), data, results):
            started = time.perf_counter()
            run = read_run(file, TASK, {"default": data}).runs["default"]
            read = time.perf_counter() - started
            scores = scoring.summary(scoring.score(run, data, 1))
            whole = time.perf_counter() - started
            print(
                f"{file.name} ({file.stat().st_size / 2**20:.0f} MiB, {queries:,} x {results:,}, "
                f"nDCG@10 {scores['ndcg_at_10']:.5f}): reading {read:.1f} s, reading and scoring {whole:.1f} s, "
                f"ratio {whole / read:.2f}"
            )
            del run


if __name__ == "__main__":
    main()
