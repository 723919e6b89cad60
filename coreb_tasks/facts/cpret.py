"""CPRet (arXiv:2505.12925, NeurIPS 2025 Datasets and Benchmarks): retrieval in competitive programming."""

from coreb_tasks.facts.schema import Benchmark, Layout, Overall, Subset, Suite, Task, reranking

CPRET = Benchmark(
    title="CPRet",
    grades={1: "relevant: solves the problem or the same problem, or is the same problem told otherwise or in full"},
    relevance_level=1,
    reference="https://arxiv.org/abs/2505.12925",
    bibtex_citation=r"""@article{deng2025cpret,
  author = {Deng, Han and Meng, Yuan and Tang, Shixiang and Ouyang, Wanli and Ma, Xinzhu},
  journal = {arXiv preprint arXiv:2505.12925},
  title = {CPRet: A Dataset, Benchmark, and Model for Retrieval in Competitive Programming},
  url = {https://arxiv.org/abs/2505.12925},
  year = {2025},
}""",
    license="cc-by-nc-4.0",
    date=("2025-05-01", "2025-10-31"),  # from the paper to the data set's last change; of collection none is stated
    domains=("Programming", "Written"),
    annotations_creators="derived",
    sample_creation="found",
)

PROBLEMS = ("eng-Latn", "zho-Hans", "jpn-Jpan")
CODE = ("c++-Code", "python-Code", "java-Code", "go-Code", "rust-Code")  # of 20 and more, those that mteb has codes for

# name: what it finds, languages, mteb's subtype
KINDS = {
    "T2C": ("Text-to-Code: find code that solves a problem", (*PROBLEMS, *CODE), "Code retrieval"),
    "C2C": ("Code-to-Code: find code that solves the same problem as the query's code", CODE, "Code retrieval"),
    "P2Dup": ("Problem-to-Duplicate: find the same problem in other words", PROBLEMS, "Duplicate Detection"),
    "S2Full": ("Simplified-to-Full: find the full statement of a shortened problem", PROBLEMS, "Article retrieval"),
}
# suffix of the task names, hub path, what descriptions call it
RELEASES = (
    ("", "coldchair16/CPRet-data", "CPRet"),
    ("-Sample", "coreb-tasks/cpret", "A small packaged sample in the fields of CPRet"),
)


def _layout(kind: str) -> Layout:
    return Layout(
        corpus=f"{kind}-corpus",
        document_id="_id",
        document_text="text",
        queries=f"{kind}-queries",
        query_id="_id",
        query_text="text",
        qrels=f"{kind}-qrels",
        qrels_query="query-id",
        qrels_document="corpus-id",
        grade="score",
        grade_if_absent=1,
    )


_RETRIEVAL = tuple(
    Task(
        name=f"CPRet-{kind}{suffix}",
        benchmark=CPRET,
        subsets={"default": Subset(_layout(kind), languages)},
        path=path,
        release="test",
        description=f"{title}, {aim}. Binary judgments, several relevant documents a query.",
        task_subtypes=(subtype,),
        sample=suffix == "-Sample",
        reranking=f"CPRet-{kind}-Reranking{suffix}",
    )
    for suffix, path, title in RELEASES
    for kind, (aim, languages, subtype) in KINDS.items()
)
TASKS = (*_RETRIEVAL, *map(reranking, _RETRIEVAL))

_MAIN = tuple(f"CPRet-{kind}" for kind in KINDS)
OVERALLS = (
    Overall(
        name="CPRet-Overall",
        benchmark=CPRET,
        parts=_MAIN,
        weighted=False,
        description=f"Mean of {', '.join(_MAIN)}: the average of the paper.",
    ),
)
SUITES = (
    Suite(
        name="CPRet(v1)",
        benchmark=CPRET,
        tasks=_MAIN,
        description="CPRet: competitive programming, from problems to code, code to code, problems to their duplicates "
        "and simplified problems to full ones. The mean over tasks is the average of the paper.",
        headline="macro",
    ),
)
