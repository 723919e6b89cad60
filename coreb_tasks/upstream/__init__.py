"""What a pull request to mteb needs: data sets, task modules, descriptive statistics and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from coreb_tasks.interop.folders import new_folder
from coreb_tasks.upstream import hub, modules, readme
from coreb_tasks.upstream.stock import StockTask, as_stock, write_statistics

README = "README.md"


def write(out: Path, names: Sequence[str], namespace: str, progress: Callable[[str], None]) -> None:
    """Write all of it into a folder that is new or empty.

    Args:
        out: the folder. It holds a README.md only once everything is written, and nothing after an error.
        names: which tasks.
        namespace: who will own the data sets on the hub.
        progress: is told of each task.

    Raises:
        DataError: data that cannot be read, or that stock mteb cannot express.
        OSError: the folder cannot be written to.
    """
    import datasets

    datasets.disable_progress_bars()
    with new_folder(out, last=README) as folder:
        tasks = []
        for number, name in enumerate(names, start=1):
            progress(f"{name} ({number} of {len(names)})")
            tasks.append(_write_task(folder, name, namespace))
        _write_modules(folder / "mteb", tasks)
        _write_text(folder / README, readme.readme(tasks))


def _write_task(folder: Path, name: str, namespace: str) -> StockTask:
    """Write data set and statistics of a task; returns the task without its data."""
    import mteb

    task = as_stock(mteb.get_task(name), namespace)
    home = folder / "datasets" / task.path
    hub.write_tables(home, task)
    _write_text(home / README, hub.card(task, home))
    write_statistics(task, folder / "mteb" / "descriptive_stats")
    return replace(task, dataset={})


def _write_modules(folder: Path, tasks: Sequence[StockTask]) -> None:
    for name, own in modules.by_module(tasks).items():
        _write_text(folder / "tasks" / "retrieval" / "code" / f"{name}.py", modules.task_module(own))
        suites = modules.whole_suites(own)
        if suites:
            _write_text(folder / "benchmarks" / "benchmarks" / f"{name}.py", modules.benchmark_module(suites))


def _write_text(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
