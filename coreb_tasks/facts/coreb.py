"""CoREB (arXiv:2605.04615): code search over counterfactually rewritten LiveCodeBench problems."""

from dataclasses import replace

from coreb_tasks.facts.schema import Benchmark, Layout, Task

GRADES = {
    2: "true positive: solves, or is solved or described by, what the query shows",
    1: "hard negative: of the same problem, but wrong or not of the kind asked for; zero gain, but takes up its rank",
}

COREB = Benchmark(
    title="CoREB",
    grades=GRADES,
    relevance_level=2,
    reference="https://arxiv.org/abs/2605.04615",
    bibtex_citation=r"""@article{xue2026coreb,
  author = {Xue, Siqiao and Liao, Zihan and Qin, Jin and Zhang, Ziyin and Mu, Yixiang and Zhou, Fan and Yu, Hang},
  journal = {arXiv preprint arXiv:2605.04615},
  title = {Beyond Retrieval: A Multitask Benchmark and Model for Code Search},
  url = {https://arxiv.org/abs/2605.04615},
  year = {2026},
}""",
    license="apache-2.0",
    date=("2026-01-01", "2026-05-01"),
    domains=("Programming", "Written"),
    task_subtypes=("Code retrieval",),
    annotations_creators="derived",
    sample_creation="LM-generated and verified",
)

# mteb's codes; "cpp-Code" is none. More than one code makes mteb's BM25 baseline read the task as English.
LANGUAGES = ("eng-Latn", "python-Code", "java-Code", "c++-Code", "go-Code", "ruby-Code")

_CODE = Layout(
    corpus="code_corpus",
    document_id="code_id",
    document_text="code",
    queries="text2code_queries",
    query_id="query_id",
    query_text="query",
    qrels="text2code_qrels",
    qrels_query="query_id",
    qrels_document="doc_id",
    grade="relevance",
    subtask="subtask",
    languages=("anchor_language", "language_constraint"),
)
LAYOUTS = {
    "T2C": _CODE,
    "C2C": replace(_CODE, queries="code2code_queries", qrels="code2code_qrels", excluded="meta_anchor_code_id"),
    "C2T": replace(
        _CODE,
        corpus="text_corpus",
        document_id="text_id",
        document_text="text",
        queries="code2text_queries",
        qrels="code2text_qrels",
    ),
}
AIMS = {
    "T2C": "Text-to-Code: find the code that solves a problem, given in full, in short or as a search query",
    "C2C": "Code-to-Code: find code that solves the same problem as the query, other than its own document",
    "C2T": "Code-to-Text: find the problem statement that the query solves, among near misses",
}
# Appendix B.3 of the paper, where they instruct the rerankers.
PROMPTS = {
    "T2C": "Given a natural language programming task, retrieve code that correctly solves or implements the task.",
    "C2C": "Given a code snippet, retrieve code that is semantically equivalent or solves the same task.",
    "C2T": "Given a code snippet, retrieve the natural language description or problem statement "
    "that best matches the code.",
}

# suffix of the task names, hub path, the data set's split, what the description says of it
RELEASES = (
    ("", "hq-bench/coreb", "release_v2603", "CoREB v202603"),
    ("-v202602", "hq-bench/coreb", "release_v2602", "CoREB v202602"),
    ("-Sample", "coreb-tasks/coreb", "sample", "A small packaged sample in the fields of CoREB"),
)

TASKS = tuple(
    Task(
        name=f"CoREB-{task}{suffix}",
        benchmark=COREB,
        layout=layout,
        path=path,
        release=release,
        description=f"{title}, {AIMS[task]}. Graded judgments with hard negatives, scored by the paper's protocol.",
        eval_langs=LANGUAGES,
        prompt=PROMPTS[task],
        adapted_from=(f"Coreb{task}Retrieval",) if suffix == "" else (),
        sample=suffix == "-Sample",
    )
    for suffix, path, release, title in RELEASES
    for task, layout in LAYOUTS.items()
)
