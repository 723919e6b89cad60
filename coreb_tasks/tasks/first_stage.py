"""First stages of reranking: a model that is run, predictions of an earlier evaluation, or a run."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import mteb

from coreb_tasks import scoring
from coreb_tasks.data import PredictionsError, RetrievalData
from coreb_tasks.data.predictions import (
    Header,
    Run,
    check_data,
    check_run,
    check_same,
    file_name,
    hash_of,
    is_number,
    read_predictions,
    write_predictions,
)
from coreb_tasks.facts import FIRST_STAGE, FIRST_STAGE_VARIABLE, SPLIT

if TYPE_CHECKING:
    from mteb.models import ModelMeta, MTEBModels

logger = logging.getLogger(__name__)

Given = str | Path | Mapping[str, Any]
Pools = dict[str, dict[str, float]]  # query id -> candidates, best first -> score in the first stage


@dataclass(frozen=True)
class Request:
    """What a first stage is asked for: the candidates of one subset of a retrieval task.

    Attributes:
        task, subset: their names.
        data: their data.
        depth: candidates of a query, at most.
        kept_in: folder to keep the candidates of a model in, or None.
        reranking: name of the reranking task, whose predictions can be candidates of another.
    """

    task: str
    reranking: str
    subset: str
    data: RetrievalData
    depth: int
    kept_in: Path | None

    def pools(self, run: Run, place: str) -> Pools:
        """The best candidates of each query, in the clean order: single precision, ties by document id descending.

        Raises:
            PredictionsError: the run is not of the data; ``place`` says where it is from.
        """
        check_run(run, self.data, place)
        excluded = self.data.excluded
        return {
            query: scoring.best(run.get(query, {}), excluded.get(query, frozenset()), self.depth)
            for query in self.data.queries
        }


class FirstStage(Protocol):
    """Where candidates come from."""

    def recorded(self) -> dict[str, str]:
        """What a result says of it, by key; less where more is not known before it runs."""

    def pools(self, request: Request, search: Callable[[MTEBModels], Run]) -> Pools:
        """The candidates. ``search`` runs a model over the corpus."""


def first_stage(given: Given | None, task: str, subsets: Sequence[str] = ("default",)) -> FirstStage:
    """The first stage that is given for subsets of a retrieval task; None: the environment variable's, or the default.

    Raises:
        FileNotFoundError: a path at which no prediction file lies.
        PredictionsError: a file that is none, or a run that is none.
    """
    if given is None:
        given = os.environ.get(FIRST_STAGE_VARIABLE) or FIRST_STAGE
    if isinstance(given, Mapping):
        return RunStage(given, subsets)
    if isinstance(given, str) and (_known(given) or not _is_path(given)):
        return ModelStage(given)
    return FileStage(_prediction_file(Path(given).expanduser(), task))


def _is_path(given: str) -> bool:
    return Path(given).expanduser().exists() or given.startswith((".", "/", "~")) or given.endswith(".json")


def _prediction_file(path: Path, task: str) -> Path:
    file = path / file_name(task) if path.is_dir() else path
    if not file.is_file():
        held = sorted(other.name for other in path.glob(file_name("*"))) if path.is_dir() else []
        there = f"the folder holds {', '.join(held) or 'no predictions'}" if path.is_dir() else "there is no such file"
        raise FileNotFoundError(
            f"first stage {str(path)!r}: expected predictions for {task} in {file}; {there}. Run {task} with "
            f"--prediction-folder, or name a model that mteb knows ({FIRST_STAGE_VARIABLE}, --first-stage)."
        )
    return file


def _known(name: str) -> ModelMeta | None:
    try:
        return mteb.get_model_meta(name)
    except KeyError:
        return None


def _header(meta: ModelMeta, request: Request) -> Header:
    data_hash = {request.subset: request.data.data_hash}
    return Header(meta.name, meta.revision, meta.experiment_name, request.task, data_hash)


def _recorded(model: str | None, revision: str | None, experiment: str | None = None) -> dict[str, str]:
    values = {"model": model, "revision": revision, "experiment": experiment}
    return {f"first_stage_{key}": value for key, value in values.items() if value is not None}


class ModelStage:
    """A model that searches the corpus. Its candidates are kept beside the results."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.meta = _known(name)

    @cached_property
    def model(self) -> MTEBModels:
        try:
            return mteb.get_model(self.name)
        except (KeyError, OSError, NotImplementedError, ValueError) as error:
            raise ValueError(
                f"first stage {self.name!r} cannot be loaded ({type(error).__name__}: {error}). Expected a model that "
                f"mteb knows, a prediction file, or a folder of such ({FIRST_STAGE_VARIABLE}, --first-stage)."
            ) from error

    def recorded(self) -> dict[str, str]:
        return _recorded(self.name, None) if self.meta is None else _recorded(self.meta.name, self.meta.revision)

    def pools(self, request: Request, search: Callable[[MTEBModels], Run]) -> Pools:
        if self.meta is None:
            self.meta = self.model.mteb_model_meta
        header = _header(self.meta, request)
        file = None if request.kept_in is None else _kept_file(request.kept_in, header, request)
        if file is not None and file.exists():
            return request.pools(_kept(file, header, request), str(file))
        logger.info("First stage of %s: %s searches the corpus.", request.task, header.run_by)
        pools = request.pools(search(self.model), f"the run of {header.run_by}")
        if file is not None:
            sealed = replace(header, run_hash={request.subset: hash_of(pools)})
            write_predictions(file, sealed, request.subset, SPLIT, pools)
        return pools


def _kept_file(folder: Path, header: Header, request: Request) -> Path:
    model = str(header.model).replace("/", "__").replace(" ", "_")
    data = request.data.data_hash[:12]
    name = file_name(f"{request.task}_top{request.depth}_{data}")
    return folder / "first_stage" / model / (header.revision or "no_revision_available") / name


def _kept(file: Path, header: Header, request: Request) -> Run:
    """Candidates that were kept, as they were. Raises PredictionsError where they are not."""
    kept = read_predictions(file)
    check_same(file, header, kept.header)
    run = kept.run(request.subset, SPLIT, str(file))
    if kept.header.run_hash.get(request.subset) != hash_of(run):
        raise PredictionsError(
            str(file),
            f"the candidates of {header.run_by} were changed since they were kept",
            "Remove the file: they are then searched again. Give candidates of your own as predictions.",
        )
    return run


class FileStage:
    """Predictions of an earlier evaluation."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.predictions = read_predictions(file)
        self.run_hash = sha256(file.read_bytes()).hexdigest()

    def recorded(self) -> dict[str, str]:
        header = self.predictions.header
        return {
            **_recorded(header.model, header.revision, header.experiment),
            "first_stage_run_hash": self.run_hash,
        }

    def pools(self, request: Request, search: Callable[[MTEBModels], Run]) -> Pools:
        found = self.predictions.header
        if request.subset not in found.data_hash:
            logger.warning(
                "%s does not say which data its predictions are of; that they are for %s is taken on trust. Files that "
                "coreb-tasks writes say it (--prediction-folder).",
                *(self.file, request.task),
            )
        tasks = (request.task, request.reranking)
        check_data(self.file, found, request.subset, tasks, request.data.data_hash)
        return request.pools(self.predictions.run(request.subset, SPLIT, str(self.file)), str(self.file))


class RunStage:
    """A run that is given in Python: query id -> document id -> score, or subset -> such a run."""

    place = "the run that was given as first stage"

    def __init__(self, run: Mapping[Any, Any], subsets: Sequence[str]) -> None:
        by_subset = {str(key) for key in run} & set(subsets)
        missing = set(subsets) - by_subset
        if by_subset and missing:
            raise PredictionsError(self.place, f"has no run for subset {min(missing)}", "Give one for each subset.")
        self.runs = {subset: self._of_python(run[subset] if by_subset else run) for subset in subsets}
        self.run_hash = hash_of(self.runs)

    def _of_python(self, run: Any) -> dict[str, dict[str, float]]:
        """With ids as strings and numbers as floats, of which numpy has kinds of its own."""
        found: dict[str, dict[str, float]] = {}
        for query, scores in run.items():
            if not isinstance(scores, Mapping):
                raise PredictionsError(
                    self.place,
                    f"query {query!r} has a {type(scores).__name__}, expected a mapping of document ids to scores",
                    "Give {query id: {document id: score}}.",
                )
            found[str(query)] = {str(document): self._number(query, document, s) for document, s in scores.items()}
        return found

    def _number(self, query: Any, document: Any, score: Any) -> float:
        if not is_number(score):
            raise PredictionsError(
                self.place,
                f"the score of query {query!r} and document {document!r} is {score!r}, expected a number",
                "Give {query id: {document id: score}}.",
            )
        return float(score)

    def recorded(self) -> dict[str, str]:
        return {**_recorded("run", None), "first_stage_run_hash": self.run_hash}

    def pools(self, request: Request, search: Callable[[MTEBModels], Run]) -> Pools:
        return request.pools(self.runs[request.subset], self.place)
