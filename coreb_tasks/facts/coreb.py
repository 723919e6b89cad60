"""CoREB (arXiv:2605.04615): code search over counterfactually rewritten LiveCodeBench problems."""

from dataclasses import replace

from coreb_tasks.facts.schema import Benchmark, Layout, Overall, Subset, Suite, Task, reranking

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
    annotations_creators="derived",
    sample_creation="LM-generated and verified",
)

# The languages of the data, and mteb's codes ("cpp-Code" is none). mteb's BM25 baseline reads a task with several codes
# as English, as it does one with the code of English alone.
CODES = {"python": "python-Code", "java": "java-Code", "cpp": "c++-Code", "go": "go-Code", "ruby": "ruby-Code"}
ENGLISH = "eng-Latn"
ALL_LANGUAGES = (ENGLISH, *CODES.values())

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

# subtasks of the data, by the suffix of the task's name: a group with a subset for each language, or one subset
BY_LANGUAGE = {
    "T2C": {"CanonicalRetro": "t2c_canonical_retro", "FullRetro": "t2c_full_retro", "Search": "t2c_search"},
    "C2C": {},
    "C2T": {"CanonicalRetro": "c2t_canonical_retro", "FullRetro": "c2t_full_retro"},
}
WHOLE = {
    "T2C": {},
    "C2C": {"CrossLang": "c2c_cross_lang", "CrossModel": "c2c_cross_model", "MonoLang": "c2c_mono_lang"},
    "C2T": {"Match": "c2t_match"},
}
ONLY_V202603 = {"CrossModel", "MonoLang"}

# suffix of the task names, hub path, the data set's split, what descriptions call it
RELEASES = (
    ("", "hq-bench/coreb", "release_v2603", "CoREB v202603"),
    ("-v202602", "hq-bench/coreb", "release_v2602", "CoREB v202602"),
    ("-Sample", "coreb-tasks/coreb", "sample", "A small packaged sample in the fields of CoREB"),
)
RULES = "Graded judgments with hard negatives, scored by the paper's protocol."


def _by_language(layout: Layout, group: str) -> dict[str, Subset]:
    """``any`` has no language of code in its codes, so that a filter by one finds the subset of that language only."""
    return {
        "any": Subset(layout, (ENGLISH,), frozenset({f"{group}_any"})),
        **{name: Subset(layout, (ENGLISH, code), frozenset({f"{group}_{name}"})) for name, code in CODES.items()},
    }


def _subtasks(kind: str, suffix: str) -> dict[str, tuple[dict[str, Subset], str]]:
    """Subsets and description of each task of a kind, by the part of its name after the kind."""
    layout = LAYOUTS[kind]
    tasks = {"": ({"default": Subset(layout, ALL_LANGUAGES)}, "")}
    if suffix == "-Sample":
        return tasks
    for name, group in BY_LANGUAGE[kind].items():
        tasks[f"-{name}"] = (_by_language(layout, group), f" Only the subtasks {group}_*.")
    for name, subtask in WHOLE[kind].items():
        if suffix == "" or name not in ONLY_V202603:
            subset = Subset(layout, ALL_LANGUAGES, frozenset({subtask}))
            tasks[f"-{name}"] = ({"default": subset}, f" Only the subtask {subtask}.")
    return tasks


_RETRIEVAL = tuple(
    Task(
        name=f"CoREB-{kind}{part}{suffix}",
        benchmark=COREB,
        subsets=subsets,
        path=path,
        release=release,
        description=f"{title}, {AIMS[kind]}.{only} {RULES}",
        prompt=PROMPTS[kind],
        adapted_from=(f"Coreb{kind}Retrieval",) if suffix == "" else (),
        sample=suffix == "-Sample",
        reranking=f"CoREB-{kind}-Reranking{suffix}",
    )
    for suffix, path, release, title in RELEASES
    for kind in LAYOUTS
    for part, (subsets, only) in _subtasks(kind, suffix).items()
)

# One for each main task; its slices hold the subtasks.
_RERANKING = tuple(
    reranking(task, adapted_from=tuple(name.replace("Retrieval", "Reranking") for name in task.adapted_from))
    for task in _RETRIEVAL
    if all(subset.subtasks is None for subset in task.subsets.values())
)
TASKS = (*_RETRIEVAL, *_RERANKING)

_MAIN = {suffix: tuple(f"CoREB-{kind}{suffix}" for kind in LAYOUTS) for suffix in ("", "-v202602")}
OVERALLS = tuple(
    Overall(
        name=f"CoREB-Overall{suffix}",
        benchmark=COREB,
        parts=parts,
        weighted=True,
        description=f"Mean over all queries of {', '.join(parts)}: the overall score of the paper.",
    )
    for suffix, parts in _MAIN.items()
)
SUITES = tuple(
    Suite(
        name=f"CoREB({version})",
        benchmark=COREB,
        tasks=parts,
        description=f"CoREB {version}: code search in five languages, graded judgments with hard negatives, scored by "
        f"the paper's protocol. The paper's overall score weighs the tasks by their queries: see {overall.name}.",
        headline="micro",
    )
    for version, parts, overall in zip(("v202603", "v202602"), _MAIN.values(), OVERALLS, strict=True)
)
