"""The official CoREB harness as an oracle, on random runs with ties, missing queries and anchors."""

import mteb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.oracle
evaluation = pytest.importorskip(
    "coreb_runner.benchmark.evaluation", reason="the official harness is not installed: pip install --no-deps coreb"
)
DOCUMENTS = [f"d{number:02}" for number in range(30)]
QUERIES = ["q1", "q2", "q3", "q4"]
CUT_OFFS = [1, 3, 5, 10, 20, 100]

scores = st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0])
runs = st.dictionaries(st.sampled_from(QUERIES), st.dictionaries(st.sampled_from(DOCUMENTS), scores, max_size=30))
judgments = st.fixed_dictionaries(
    {q: st.dictionaries(st.sampled_from(DOCUMENTS[1:]), st.sampled_from([1, 2]), min_size=1) for q in QUERIES}
)


@pytest.mark.parametrize("kind", ["T2C", "C2C"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(run=runs, qrels=judgments)
def test_the_task_gives_the_scores_of_the_official_harness(hub, stubs, task_of, kind, run, qrels):
    """The anchor of every C2C query is the first document. mteb rounds as the harness does."""
    name = {"T2C": "text2code", "C2C": "code2code"}[kind]
    like = hub.tables[f"{name}_queries"][0]
    hub.tables["code_corpus"] = [{"code_id": document, "code": f"code {document}"} for document in DOCUMENTS]
    hub.tables[f"{name}_queries"] = [{**like, "query_id": query} for query in QUERIES]
    if kind == "C2C":
        hub.tables[f"{name}_queries"] = [{**like, "query_id": q, "meta_anchor_code_id": DOCUMENTS[0]} for q in QUERIES]
    hub.tables[f"{name}_qrels"] = [
        {"query_id": query, "doc_id": document, "relevance": grade}
        for query, documents in qrels.items()
        for document, grade in documents.items()
    ]
    hub.write()
    hub.pin(kind)
    result = mteb.evaluate(stubs.search(run), task_of(kind), cache=None, co2_tracker=False, show_progress_bar=False)
    ours = result.task_results[0].scores["test"][0]

    complete = {query: dict(run.get(query, {})) for query in QUERIES}
    if kind == "C2C":
        for ranked in complete.values():
            ranked.pop(DOCUMENTS[0], None)
    theirs = evaluation.EvaluateRetrieval.evaluate(qrels, complete, CUT_OFFS, ignore_identical_ids=False)
    for metric, values in zip(("ndcg", "map", "recall", "precision"), theirs, strict=True):
        for cut_off in CUT_OFFS:
            label = {"ndcg": "NDCG", "map": "MAP", "recall": "Recall", "precision": "P"}[metric]
            assert ours[f"{metric}_at_{cut_off}"] == values[f"{label}@{cut_off}"], (metric, cut_off)
