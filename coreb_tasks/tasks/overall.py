"""Scores over several tasks, as aggregate tasks of mteb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mteb.abstasks.aggregate_task_metadata import AggregateTaskMetadata
from mteb.abstasks.aggregated_task import AbsTaskAggregate

from coreb_tasks import rules
from coreb_tasks.data import UNRESOLVED, revision_of
from coreb_tasks.facts import Overall

if TYPE_CHECKING:
    from mteb.results import TaskResult


class OverallScore(AbsTaskAggregate):
    """The overall score of a paper, over the queries or over the tasks of its parts.

    Attributes:
        facts: the task's row of the table.
    """

    facts: ClassVar[Overall]
    metadata: AggregateTaskMetadata

    def __init__(self, **kwargs: Any) -> None:
        # Parts of its own: those of the class would keep what an evaluation that failed has left in them.
        self.metadata = self.metadata.model_copy(update={"tasks": [type(part)() for part in self.metadata.tasks]})
        super().__init__(**kwargs)

    def task_results_to_scores(self, task_results: list[TaskResult]) -> dict[str, Any]:
        """The scores by split and subset. Where a part, or a subset of a part, is missing, the score is None (null)."""
        by_name = {result.task_name: result for result in task_results}
        names = [task.metadata.name for task in self.tasks]
        if by_name.keys() >= set(names):
            revisions = [by_name[name].dataset_revision for name in names]
            dataset = {**self.metadata.dataset, "revision": overall_revision(revisions)}
            self.metadata = self.metadata.model_copy(update={"dataset": dataset})
        return {split: {"default": self._scores(by_name, split)} for split in self.metadata.eval_splits}

    def _scores(self, by_name: dict[str, TaskResult], split: str) -> dict[str, Any]:
        parts: list[dict[str, tuple[float, int]]] = []
        for task in self.tasks:
            result = by_name.get(task.metadata.name)
            stored = [] if result is None else result.scores.get(split, [])
            parts.append({scores["hf_subset"]: (scores["main_score"], scores["n_queries"]) for scores in stored})
            if not parts[-1].keys() >= set(task.metadata.hf_subsets):
                return {"main_score": None, self.metadata.main_score: None}
        held = [list(part.values()) for part in parts]
        score = rules.overall_score(held, weighted=self.facts.weighted)
        queries = sum(count for part in held for _, count in part)
        return {"main_score": score, self.metadata.main_score: score, "n_queries": queries}


def overall_revision(revisions: Sequence[str]) -> str:
    """The revision of data of several tasks, by the tasks' own."""
    return UNRESOLVED if UNRESOLVED in revisions else revision_of(revisions) if len(revisions) > 1 else revisions[0]
