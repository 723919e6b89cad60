"""A run scores alike as the search of a model, through mteb, and as a run that is given."""

import mteb
import pytest

from coreb_tasks import interop
from coreb_tasks.data import load
from coreb_tasks.facts import TASKS

SAMPLES = [
    (name, subset) for name, task in TASKS.items() if task.sample and task.reranks is None for subset in task.subsets
]


@pytest.mark.parametrize(("name", "subset"), SAMPLES)
@pytest.mark.parametrize("depth", [30, 120])
def test_any_run_scores_as_the_task_itself_does(name, subset, depth, stubs, random_run):
    """Every key but mteb's own, with ties, a missing query and excluded documents."""
    run = random_run(load(TASKS[name], subset), depth, seed=depth)
    task = mteb.get_task(name, hf_subsets=[subset])
    result = mteb.evaluate(stubs.search(run), task, cache=None, co2_tracker=False, show_progress_bar=False)
    (expected,) = result.task_results[0].scores["test"]
    found = interop.score(name, run, subset)
    mtebs_own = {key for key in expected if key.startswith("nauc")} | {"languages", "accuracy", "mteb_version"}
    assert expected.keys() - found.keys() == mtebs_own & expected.keys()
    # mteb leaves its own MRR unrounded.
    assert found == {key: round(expected[key], 5) if "mrr" in key else expected[key] for key in found}
