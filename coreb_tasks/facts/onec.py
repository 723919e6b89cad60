"""1C-Ebench (arXiv:2608.19957): Russian questions to 1C:Enterprise code (BSL and the 1C query language)."""

from coreb_tasks.facts.schema import Benchmark, Layout, Overall, Subset, Suite, Task, reranking

ONEC = Benchmark(
    title="1C-Ebench",
    grades={1: "relevant: the code that answers the question in the source; one a question, with the question's id"},
    relevance_level=1,
    reference="https://arxiv.org/abs/2608.19957",
    # The authors are not known here.
    bibtex_citation=r"""@article{onecebench2026,
  journal = {arXiv preprint arXiv:2608.19957},
  title = {1C-Ebench},
  url = {https://arxiv.org/abs/2608.19957},
  year = {2026},
}""",
    license="not specified",
    date=("2026-08-01", "2026-08-31"),  # of the paper; of collection none is stated
    domains=("Programming", "Written"),
    annotations_creators="derived",
    sample_creation="found",
)

# mteb has no code for BSL ("bsl" is a natural language there), and one code lets its BM25 stem Russian.
RUSSIAN = ("rus-Cyrl",)


def _layout(config: str) -> Layout:
    return Layout(
        corpus=config,
        document_id="id",
        document_text="code",
        queries=config,
        query_id="id",
        query_text="question",
    )


SUBSETS = {config: Subset(_layout(config), RUSSIAN) for config in ("forum", "fastcode")}
AIM = "Russian questions to 1C:Enterprise code, asked in a forum and as titles of a code collection"

_RETRIEVAL = (
    Task(
        name="1C-Ebench",
        benchmark=ONEC,
        subsets=SUBSETS,
        path="PruhaNLP/1C-Ebench",
        release="test",
        commit="ae3af100584c51dcd43ff927b726bd27ba42d769",
        description=f"1C-Ebench, {AIM}. The mean over subsets is the macro average of the paper.",
        reranking="1C-Ebench-Reranking",
    ),
    Task(
        name="1C-Ebench-Sample",
        benchmark=ONEC,
        subsets=SUBSETS,
        path="coreb-tasks/onec_ebench",
        release="test",
        description=f"A small packaged sample in the fields of 1C-Ebench, {AIM}.",
        sample=True,
        reranking="1C-Ebench-Reranking-Sample",
    ),
)
TASKS = (*_RETRIEVAL, *map(reranking, _RETRIEVAL))
OVERALLS = (
    Overall(
        name="1C-Ebench-Micro",
        benchmark=ONEC,
        parts=("1C-Ebench",),
        weighted=True,
        description="Mean over all queries of both subsets of 1C-Ebench: the micro average of the paper.",
    ),
)
SUITES = (
    Suite(
        name="1C-Ebench(v1)",
        benchmark=ONEC,
        tasks=("1C-Ebench",),
        description="1C-Ebench: Russian questions to 1C:Enterprise code. Its one task's score is the macro average of "
        "the paper; the micro average is 1C-Ebench-Micro.",
        headline="macro",
    ),
)
