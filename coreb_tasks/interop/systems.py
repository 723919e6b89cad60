"""Systems that are compared: what a run file, a prediction file or a folder of these holds, by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from coreb_tasks.data import PredictionsError, RetrievalData
from coreb_tasks.data.predictions import file_name, read_predictions
from coreb_tasks.facts import TASKS, Task
from coreb_tasks.facts.find import find_task
from coreb_tasks.interop.runs import ReadRun, of_predictions, read_run, task_of

Reader = Callable[[Task, Mapping[str, RetrievalData]], ReadRun]


@dataclass
class System:
    """A file or folder that was named.

    Attributes:
        place: as it was named.
        readers: name of a retrieval task -> reads the run for it, and raises PredictionsError as ``read_run``.
        faults: what of it cannot be compared, a sentence each.
    """

    place: str
    readers: dict[str, Reader]
    faults: list[str] = field(default_factory=list)


def find_system(place: Path, task: Task | None = None) -> System:
    """What a file or folder holds: of a reranking task it counts for the retrieval task whose data it shares.

    Args:
        place: a prediction file of mteb, or a folder of them; with ``task`` also any run of it that ``read_run`` reads.
        task: the only task that is wanted; None for every one that is there.

    Raises:
        PredictionsError: it holds no run, or is not there.
        UnknownTaskError: a file is of a task that is none.
    """
    if place.is_dir():
        return _folder(place, task)
    if task is not None:
        return System(str(place), {task.name: partial(read_run, place)})
    try:
        predictions = read_predictions(place)
    except PredictionsError as error:
        raise PredictionsError(str(place), f"names no task ({error})", "Name --task for other run files.") from error
    return System(
        str(place), {find_task(task_of(place, predictions)).name: partial(of_predictions, place, predictions)}
    )


def _folder(folder: Path, task: Task | None) -> System:
    system = System(str(folder), {})
    held: dict[str, list[Path]] = {}
    for file in sorted(folder.glob(file_name("*"))):
        name = file.name.removesuffix(file_name(""))
        if name in TASKS:
            held.setdefault(TASKS[name].retrieval, []).append(file)
        elif task is None:
            system.faults.append(f"{file}: {name} is no task of this package, left out")
    for name, files in held.items():
        if len(files) == 1:
            system.readers[name] = partial(read_run, files[0])
        elif task is None or name == task.name:
            both = " and ".join(file.name for file in files)
            system.faults.append(f"{folder} holds {both}, both on the data of {name}, left out; name one of the files")
    if task is not None:
        reader = system.readers.get(task.name, partial(read_run, folder))
        system.readers = {} if system.faults else {task.name: reader}
    elif not system.readers and not system.faults:
        expected = f"holds no predictions of mteb ({file_name('TASK')})"
        raise PredictionsError(str(folder), expected, "Name the folder of --prediction-folder, or --task.")
    return system
