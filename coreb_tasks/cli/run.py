"""Run a model or a folder on tasks, as mteb run does."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from coreb_tasks.cli.console import fail
from coreb_tasks.data.predictions import file_name
from coreb_tasks.facts import FIRST_STAGE_VARIABLE, OVERALLS, TASKS

if TYPE_CHECKING:
    from mteb.models import ModelMeta
    from mteb.results import ModelResult

PREDICTIONS = file_name("*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.allow_abbrev = False  # an abbreviation may be of an option of mteb's
    parser.epilog = (
        "All other options are those of mteb run and mean the same: -b BENCHMARK..., --output-folder, --batch-size, "
        "--overwrite-strategy, --prediction-folder and so on (mteb run --help)."
    )
    parser.usage = "%(prog)s -m MODEL_OR_FOLDER -t TASK... [options] [options of mteb run]"
    parser.set_defaults(mteb_arguments=[])
    parser.add_argument(
        "-m", "--model", required=True, metavar="MODEL_OR_FOLDER", help="a name, as for mteb run, or a model's folder"
    )
    parser.add_argument(
        "--kind",
        help="encoder, cross-encoder or yes-no (reranker), where a folder's files do not tell, or tell another",
    )
    parser.add_argument(
        "--as",
        dest="like",
        metavar="MODEL",
        help="run a folder with the settings (prompts, lengths) of a model that mteb knows, of which it is a copy",
    )
    parser.add_argument(
        "--first-stage",
        metavar="MODEL_OR_PATH",
        help="for reranking tasks: the model (or its folder) that finds the candidates, or predictions of a run",
    )
    parser.add_argument("--query-prompt", metavar="TEXT", help="put before each query, in place of the model's own")
    parser.add_argument("--document-prompt", metavar="TEXT", help="put before each document; without it: nothing")
    parser.add_argument("--trust-remote-code", action="store_true", help="run the code that a folder holds")


def run(options: argparse.Namespace) -> int:
    faults = [*_path_faults("-m", options.model), *_path_faults("--first-stage", options.first_stage)]
    faults += _senseless(options)
    if faults:
        return fail("run", faults)
    from coreb_tasks import registry

    asked = registry.parse_run(["-m", options.model, *options.mteb_arguments])
    faults = _name_faults(asked, registry.known_tasks())
    named = bool(asked.tasks or asked.benchmarks) and not faults
    if options.first_stage and named and not any(map(_reranks, asked.tasks or [])):
        faults.append("--first-stage is for the reranking tasks of this package, and none is asked for: leave it out")
    model, stage = None, None
    try:
        model = _model(options, asked.model_revision)
    except (ValueError, OSError) as error:
        faults.append(_line(error))
    try:
        stage = _first_stage(options)
    except (ValueError, OSError) as error:
        faults.append(_line(error))
    if model is None or faults:
        return fail("run", faults)
    try:
        with _first_stage_is(stage):
            result = registry.run_mteb(["-m", model, *options.mteb_arguments])
    except (ValueError, OSError, TypeError) as error:
        if not _is_ours(error):
            raise
        return fail("run", [_line(error)])
    return _summarise(result, asked.tasks or [] if not asked.benchmarks else [])


def _reranks(task: str) -> bool:
    return task in TASKS and TASKS[task].reranks is not None


def _path_faults(option: str, given: str | None) -> Iterator[str]:
    """That a path is not there. What looks like none may be a name."""
    if given is None or _path(given).exists():
        return
    if given.startswith((".", "/", "~")) or "\\" in given or given.count("/") > 1:
        expected = "a model's folder or its name" if option == "-m" else "a model, its folder, or predictions"
        yield f"{option} {given}: folder not found; expected {expected}"


def _senseless(options: argparse.Namespace) -> Iterator[str]:
    """Options that would do nothing."""
    folder, stage = _folder(options.model), _folder(options.first_stage)
    if folder is None and _path(options.model).is_file():
        yield f"-m {options.model} is a file; expected a model's folder or its name"
    if folder is None and options.kind is not None:
        yield f"--kind is for a folder, and {options.model} is none: leave it out"
    if folder is None and options.like is not None:
        yield f"--as is for a folder, and {options.model} is none: leave it out"
    if options.kind is not None and options.like is not None:
        yield f"--as {options.like} says the kind, too: leave --kind out"
    if folder is None and stage is None and options.trust_remote_code:
        yield f"--trust-remote-code is for a folder, and {options.model} is none: leave it out"


def _folder(given: str | None) -> Path | None:
    return _path(given) if given and _path(given).is_dir() else None


def _path(given: str) -> Path:
    return Path(os.path.expanduser(given))  # not Path's own, which fails where there is no such user


def _name_faults(asked: argparse.Namespace, known: Collection[str]) -> list[str]:
    """Names of benchmarks and tasks that nobody knows."""
    import mteb

    faults = []
    for name in asked.benchmarks or []:
        try:
            mteb.get_benchmark(name)
        except KeyError as error:
            faults.append(f"unknown benchmark {error.args[0]}")
    return faults + [f"unknown task {name}{_closest(name, known)}" for name in asked.tasks or [] if name not in known]


def _closest(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, [*TASKS, *OVERALLS], n=1) or get_close_matches(name, known, n=1)
    return f", did you mean {close[0]}?" if close else "; `coreb-tasks list` shows the names"


def _model(options: argparse.Namespace, revision: str | None) -> str:
    """The name by which mteb knows the model to run."""

    from coreb_tasks.wrappers.prompts import prompted

    folder = _folder(options.model)
    prompts = [options.query_prompt, options.document_prompt]
    if folder is None:
        meta = _known(options.model, revision)
        if prompts == [None, None]:
            return str(options.model)
    elif revision is not None:
        raise ValueError("--model-revision is for models of the hub; that of a folder is a hash of it: leave it out")
    else:
        like = None if options.like is None else _known(options.like, None)
        meta = _local(folder, options.kind, options, like)
    if prompts != [None, None]:
        meta = prompted(meta, *(prompt or "" for prompt in prompts))
    return _register(meta, folder)


def _known(name: str, revision: str | None) -> ModelMeta:
    """The metadata of a model that mteb or the hub has.

    Raises:
        ValueError: neither has.
    """
    import mteb

    try:
        meta = mteb.get_model_meta(name, revision, fetch_from_hf=True)
    except (KeyError, OSError) as error:
        raise ValueError(
            f"{name}: no folder of that name here, no model that mteb knows, and none that the hub gives "
            f"({type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else 'no reason given'})"
        ) from error
    if meta.loader is None:
        raise ValueError(f"{name}: no folder of that name here, and no model that mteb can load")
    return meta


def _first_stage(options: argparse.Namespace) -> str | None:
    """What the reranking tasks are told: a path with predictions, or the name by which mteb knows a model."""
    from coreb_tasks.models.local import LOOKED_FOR, is_model

    folder, given = _folder(options.first_stage), options.first_stage
    if folder is None:
        return str(_path(given)) if given and _path(given).exists() else given
    if is_model(folder):
        try:
            meta = _local(folder, None, options)
        except ValueError as error:
            raise ValueError(f"--first-stage takes the folder of a sentence-transformers encoder: {error}") from error
        if meta.is_cross_encoder:
            raise ValueError(f"--first-stage {given} is a reranker; expected an encoder")
        return _register(meta, folder)
    if any(folder.glob(PREDICTIONS)):
        return str(folder)
    raise ValueError(f"--first-stage {given}: expected predictions ({PREDICTIONS}) or a model, {LOOKED_FOR}")


def _local(folder: Path, kind: str | None, options: argparse.Namespace, like: ModelMeta | None = None) -> ModelMeta:
    from coreb_tasks.models.local import kind_of, local_meta

    kind = kind_of(folder, kind) if like is None else None
    meta = local_meta(folder, kind, trust_remote_code=options.trust_remote_code, like=like)
    what = kind if like is None else f"run as {like.name}"
    print(f"coreb-tasks run: {folder} is {meta.name}, {what}, revision {meta.revision}", file=sys.stderr)
    return meta


def _register(meta: ModelMeta, folder: Path | None) -> str:
    """Let mteb know a model under a name that no other has in this process."""
    from coreb_tasks import registry

    told_apart = repr((folder and folder.resolve(), meta.experiment_kwargs)).encode()
    name = f"{meta.name}@{meta.revision}.{hashlib.sha256(told_apart).hexdigest()[:12]}"
    registry.add_models({name: meta})
    return name


@contextmanager
def _first_stage_is(stage: str | None) -> Iterator[None]:
    before = os.environ.get(FIRST_STAGE_VARIABLE)
    if stage is not None:
        os.environ[FIRST_STAGE_VARIABLE] = stage
    try:
        yield
    finally:
        if stage is not None:
            os.environ.pop(FIRST_STAGE_VARIABLE)
            os.environ.update({} if before is None else {FIRST_STAGE_VARIABLE: before})


def _is_ours(error: BaseException) -> bool:
    """Whether this package raised it, and says what to do. Any other keeps its traceback."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).split(".")[0] == "coreb_tasks"


def _line(error: object) -> str:
    return " ".join(str(error).split())


def _summarise(result: ModelResult, asked: Sequence[str]) -> int:
    """Print a line for each task; returns the exit code."""
    done = {task.task_name: task for task in result.task_results}
    for name, task in done.items():
        print(f"{name}: {task.get_score():.5f}")
    errors = {error.task_name: error.exception for error in result.exceptions or []}
    faults = [f"{name} failed: {_line(error)}" for name, error in errors.items()]
    faults += [
        f"{name} was skipped: nothing of it is left by the options given (languages, splits)"
        for name in dict.fromkeys(asked)
        if name not in done and name not in errors
    ]
    return fail("run", faults) if faults else 0
