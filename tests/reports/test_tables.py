"""Tables: figures are those of the result files, means those of the papers, and none is taken over a hole."""

import csv
import io
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreb_tasks import rules
from coreb_tasks.cli import main
from coreb_tasks.facts import TASKS
from coreb_tasks.reports.formats import FORMATS, Part
from coreb_tasks.reports.scores import Run, Scores, run_names
from coreb_tasks.reports.sections import REPORTED, sections
from coreb_tasks.reports.tables import Column, Row, Table, details, leaderboard, subtasks, tables

KEYS = {"queries": "n_queries", "nDCG@10": "ndcg_at_10", "Recall@10": "recall_at_10", "MRR@10": "mrr_at_10"}
KEYS |= {"intrusion": "hard_negative_intrusion_at_10", "intrusion@10": "hard_negative_intrusion_at_10"}
KEYS |= {"n": "hard_negative_intrusion_n", "first stage": "first_stage_model", "depth": "first_stage_depth"}
KEYS |= {"first nDCG@10": "first_stage/ndcg_at_10", "reranked nDCG@10": "ndcg_at_10"}
KEYS |= {"difference": "rerank_delta/ndcg_at_10", "ceiling": "pool_ceiling/ndcg_at_10"}


def expected(files, suite, table, run, cells, column):
    """The figure of a cell, worked out from the files alone."""

    def value(task, subset, key):
        return files.get((run.model, run.experiment, task, subset), {}).get(key)

    main_tasks = REPORTED[suite].tasks if suite else ()
    if "task" in cells and "subset" in cells:
        return value(cells["task"], cells["subset"], "/".join(filter(None, (cells.get("slice"), KEYS[column]))))
    if table.startswith("leaderboard"):
        metric = table.removeprefix("leaderboard_")
        parts = [[(value(t, s, metric), value(t, s, "n_queries")) for s in TASKS[t].subsets] for t in main_tasks]
        if column in ("macro", "micro"):
            hole = any(score is None for part in parts for score, _ in part)
            return None if hole else rules.overall_score(parts, weighted=column == "micro")
        subset = "default" if column in TASKS else column
        return value(column if column in TASKS else main_tasks[0], subset, metric)
    if table == "languages":
        return value(cells["task"], "default", f"language={column}/ndcg_at_10")
    subtask, languages = cells.get("subtask", column), ("any", "python", "java", "cpp", "ruby", "go")
    task = next(task for task in main_tasks if task.split("-")[1].lower() == subtask[:3])
    if table == "subtasks_by_language":
        language = column
        return value(task, "default", f"{subtask}_{language}/ndcg_at_10")
    names = [subtask, *(f"{subtask}_{language}" for language in languages)]
    slices = [(value(task, "default", f"{n}/ndcg_at_10"), value(task, "default", f"{n}/n_queries")) for n in names]
    held = [(score, queries) for score, queries in slices if score is not None]
    return round(sum(score * queries for score, queries in held) / sum(queries for _, queries in held), 5)


def figures(table):
    for row in table.rows:
        cells = {column.name: cell for column, cell in zip(table.columns, row.cells, strict=True)}
        for column in table.columns:
            if column.kind != "text":
                yield row.run, cells, column, cells[column.name]


@pytest.mark.parametrize("suite", ["CoREB(v202603)", "CoREB(sample)", "CPRet(sample)", "1C-Ebench(sample)"])
def test_every_figure_is_that_of_the_result_files(section, files, suite):
    checked = 0
    for table in tables(section(suite)):
        for run, cells, column, cell in figures(table):
            assert cell == expected(files, suite, table.name, run, cells, column.name), (table.name, cells)
            checked += 1
    assert checked > 10


@pytest.mark.parametrize("slices", [False, True])
def test_every_figure_of_the_details_is_that_of_the_result_files(recorded, files, slices):
    table = details(recorded, slices=slices)
    for run, cells, column, cell in figures(table):
        assert cell == expected(files, "", table.name, run, cells, column.name)
    assert len([row for row in table.rows if not slices or row.cells[4] == ""]) == len(files)


RUN = Run("org/model")


def scores(task, score, queries=1, subset="default", run=RUN, **more):
    return Scores(run, task, subset, {"ndcg_at_10": score, "n_queries": queries, **more})


def board(section, name, *found):
    table = leaderboard(section(name, found), "ndcg_at_10", "nDCG@10")
    return [dict(zip([column.title for column in table.columns], row.cells, strict=True)) for row in table.rows]


def test_coreb_is_ranked_by_the_mean_over_queries(section):
    found = [scores("CoREB-T2C", 0.5, 4), scores("CoREB-C2C", 0.2, 1), scores("CoREB-C2T", 0.8, 5)]
    (row,) = board(section, "CoREB(v202603)", *found)
    # (0.5 x 4 + 0.2 x 1 + 0.8 x 5) / 10, and (0.5 + 0.2 + 0.8) / 3
    assert (row["micro (headline)"], row["macro"]) == (0.62, 0.5)


def test_cpret_is_ranked_by_the_mean_over_tasks(section):
    found = [scores(f"CPRet-{kind}", 0.1 * n, n) for n, kind in enumerate(("T2C", "C2C", "P2Dup", "S2Full"), start=1)]
    (row,) = board(section, "CPRet(v1)", *found)
    # (0.1 + 0.2 + 0.3 + 0.4) / 4, and (0.1 x 1 + 0.2 x 2 + 0.3 x 3 + 0.4 x 4) / 10
    assert (row["macro (headline)"], row["micro"]) == (0.25, 0.3)


def test_1c_ebench_is_ranked_by_the_mean_over_subsets(section):
    found = [scores("1C-Ebench", 0.2, 3, "forum"), scores("1C-Ebench", 0.6, 1, "fastcode")]
    (row,) = board(section, "1C-Ebench(v1)", *found)
    assert (row["forum"], row["fastcode"], row["macro (headline)"], row["micro"]) == (0.2, 0.6, 0.4, 0.3)


def test_no_mean_is_taken_over_a_hole_and_such_runs_come_last(section):
    whole = [scores(f"CoREB-{kind}", 0.1, run=Run("org/whole")) for kind in ("T2C", "C2C", "C2T")]
    partial = [scores(f"CoREB-{kind}", 0.9, run=Run("org/a")) for kind in ("T2C", "C2C")]
    first, last = board(section, "CoREB(v202603)", *partial, *whole)
    assert (first["model"], first["micro (headline)"]) == ("org/whole", 0.1)
    assert (last["CoREB-T2C"], last["CoREB-C2T"], last["macro"], last["micro (headline)"]) == (0.9, None, None, None)


def test_a_subtask_is_the_mean_over_the_queries_of_its_languages(section):
    slices = {}
    for language in ("any", "python", "java", "cpp", "ruby", "go"):
        score, queries = (0.2, 5) if language == "any" else (0.6, 1)
        slices |= {f"t2c_search_{language}/ndcg_at_10": score, f"t2c_search_{language}/n_queries": queries}
    table = subtasks(section("CoREB(v202603)", [scores("CoREB-T2C", 0.5, 10, **slices)]))
    assert [column.name for column in table.columns] == ["model", "t2c_search"]
    assert table.rows[0].cells == ("org/model", 0.4)  # (0.2 x 5 + 0.6 x 5) / 10
    del slices["t2c_search_go/ndcg_at_10"], slices["t2c_search_go/n_queries"]
    assert subtasks(section("CoREB(v202603)", [scores("CoREB-T2C", 0.5, 10, **slices)])).rows == ()


def test_a_subtask_is_read_from_its_own_task_where_there_is_no_main_one(section):
    found = [scores("CoREB-C2C-MonoLang", 0.25, 45)]
    assert subtasks(section("CoREB(v202603)", found)).rows[0].cells == ("org/model", 0.25)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 1000)), min_size=3, max_size=3))
def test_means_lie_between_their_parts(parts):
    found = [scores(task, *part) for task, part in zip(REPORTED["CoREB(v202603)"].tasks, parts, strict=True)]
    (made,) = sections(found, [REPORTED["CoREB(v202603)"]], reference=False)
    low, high = (choose(score for score, _ in parts) for choose in (min, max))
    for kind in ("macro", "micro"):
        assert low - 1e-5 <= made.mean(found[0].run, kind, "ndcg_at_10") <= high + 1e-5


def test_runs_of_one_model_are_told_apart_by_revision_and_experiment():
    runs = [Run("a", "1"), Run("a", "1", "embed_dim_8"), Run("b", "1"), Run("b", source="arXiv:0")]
    assert list(run_names(runs).values()) == ["a (1)", "a (embed_dim_8)", "b", "b"]
    hashes = ["0123456789abcdef" * 2 + "01234567", "fedcba98" * 5]
    runs = [Run("a", hashes[0]), Run("a", hashes[1]), Run("a", hashes[1], "embed_dim_8"), Run("a", "main")]
    names = ["a (01234567)", "a (fedcba98)", "a (fedcba98, embed_dim_8)", "a (main)"]
    assert list(run_names(runs).values()) == names
    alike = [Run("a", hashes[0]), Run("a", hashes[0][:-1] + "f")]
    assert [*run_names(alike).values()] == [f"a ({run.revision})" for run in alike]


NASTY = r"a|b_c & 50% $x$ {y} \z #1 ~^ <i>"
TABLE = Table(
    "t",
    "Title",
    "Note.",
    (Column("model", "text"), Column("score", headline=True), Column("n", "count"), Column("gain", "difference")),
    (Row(RUN, (NASTY, 0.123456, 1234, -0.5)), Row(RUN, ("none", None, None, math.nan))),
)


def test_markdown_escapes_what_would_be_markup():
    lines = FORMATS["markdown"]([Part("B", [TABLE])]).splitlines()
    assert lines[0] == "### B: Title"
    assert lines[3:5] == ["| model | score (headline) | n | gain |", "| --- | ---: | ---: | ---: |"]
    assert lines[5] == r"| a\|b\_c & 50% $x$ {y} \\z #1 ~^ \<i> | 0.12346 | 1,234 | -0.50000 |"
    assert lines[6] == "| none | – | – | +nan |"


def test_latex_escapes_what_would_be_commands():
    lines = FORMATS["latex"]([Part("B", [TABLE])]).splitlines()
    assert lines[1] == r"\begin{tabular}{lrrr}"
    escaped = r"a|b\_c \& 50\% \$x\$ \{y\} \textbackslash{}z \#1 \textasciitilde{}\textasciicircum{}"
    assert lines[5] == escaped + r" \textless{}i\textgreater{} & 0.12346 & 1,234 & -0.50000 \\"
    assert lines[6].startswith("none & -- & -- &")


def test_csv_and_json_hold_the_exact_values():
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"]([Part("B", [TABLE])]))))
    assert [(row["model"], row["column"], row["value"]) for row in rows[:4]] == [
        (NASTY, "score", "0.123456"),
        (NASTY, "n", "1234"),
        (NASTY, "gain", "-0.5"),
        ("none", "score", ""),
    ]
    (table,) = json.loads(FORMATS["json"]([Part("B", [TABLE])]))
    assert (table["benchmark"], table["headline"]) == ("B", "score")
    assert table["rows"] == [[NASTY, 0.123456, 1234, -0.5], ["none", None, None, "nan"]]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_printed_of_the_recorded_results(capsys, name):
    assert main(["report", str(Path(__file__).parent / "results"), "--format", name, "--reference"]) == 0
    written = capsys.readouterr()
    assert "0.29829" in written.out  # nDCG@10 of BM25 on CoREB-C2C
    assert written.err == ""
