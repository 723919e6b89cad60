"""Run files: every form reads alike, what is wrong is named, and what is written every tool scores alike."""

import gzip
import json
from unittest import mock

import numpy as np
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coreb_tasks.data import PredictionsError
from coreb_tasks.facts import TASKS
from coreb_tasks.interop.runs import read_run, strictly_decreasing, take_run, write_beir, write_trec

TASK = TASKS["CoREB-C2C"]
LINES = "q1 Q0 b 1 0.9 tag\nq1\tQ0  d 2 .5\ttag\nq2 Q0 a 1 -3e-2 tag\n"
RUN = {"q1": {"b": 0.9, "d": 0.5}, "q2": {"a": -0.03}}


@pytest.fixture
def data(hostile):
    return hostile(["a", "b", "c", "d"], ["q1", "q2"])


@pytest.fixture
def read(tmp_path, data):
    def read(content, name="run", data=data):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_run(file, TASK, {"default": data})

    return read


def predictions(run, **ours):
    header = {"mteb_model_meta": {"model_name": "org/model", "revision": "1"}}
    return json.dumps({**header, **({"coreb_tasks": ours} if ours else {}), "default": {"test": run}})


OURS = {"task": "CoREB-C2C", "data_hash": {"default": "ab" * 32}}


@pytest.mark.parametrize(
    "content",
    [
        LINES,
        LINES.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + LINES.encode(),
        gzip.compress(LINES.encode(), mtime=0),
        "q1 Q0 b 1 0.9 tag\nq2 Q0 a 1 -0.03 tag\nq1 Q0 d 2 0.5 tag",  # not grouped, no last line end
        json.dumps(RUN),
        b"\xef\xbb\xbf \n" + json.dumps(RUN).encode(),
        gzip.compress(json.dumps(RUN).encode(), mtime=0),
        predictions(RUN, **OURS),
        predictions(RUN, **{**OURS, "task": "CoREB-C2C-Reranking"}),
    ],
)
def test_every_form_of_a_run_reads_alike(read, content):
    found = read(content)
    assert found.runs == {"default": RUN}
    assert found.warnings == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "run: the file is empty"),
        (gzip.compress(b"", mtime=0), "run: the file is empty"),
        (gzip.compress(LINES.encode(), mtime=0)[:-9], "run: cannot be read .EOFError"),
        (LINES + "\n", "run, line 4: 0 columns, expected 6"),
        (LINES + "q1 Q0 a 3 0.1\n", "run, line 4: 5 columns, expected 6 .query, Q0, document, rank, score, tag"),
        (LINES + "q1 Q0 a b 3 0.1 tag\n", "run, line 4: 7 columns"),
        (LINES + "q2 Q0 z 2 -4 tag\n", "run, line 4: document 'z' is not in the corpus"),
        (LINES + "q1 Q0 b 3 0.1 tag\n", "run, line 4: document 'b' stands a second time for query 'q1'"),
        (LINES + "q2 Q0 b 2.0 -4 tag\n", "run, line 4: rank '2.0' and score '-4', expected whole number"),
        (LINES + f"q2 Q0 b {10**30} -4 tag\n", "run, line 4: rank '10+' and score"),
        *(
            (LINES + f"q2 Q0 b 2 {score} tag\n", f"run, line 4: rank '2' and score '{score}'")
            for score in ("nan", "inf", "-inf", "1e39", "x", "1_0")
        ),
        (b"\xff\xfe" + LINES.encode("utf-16-le"), "is no text in UTF-8"),
        ("x1 Q0 b 1 0.9 tag\n", "none of its 1 queries is the task's, the first: ..x1"),
        (LINES + "x Q0 z 1 nan tag\n", "run, line 4: rank '1' and score 'nan'"),
        (LINES + "x Q0 z 1 1 tag\nx Q0 z 2 0 tag\n", "run, line 5: document 'z' stands a second time for query 'x'"),
        ("qid Q0 docid rank score tag\n" + LINES, "run, line 1: rank 'rank' and score 'score'"),
        (LINES + "q2 Q0 b 1_0 -4 tag\n", "run, line 4: rank '1_0'"),
        ("[]", "expected a run: query id -> document id -> score, got .."),
        ('{"q1": {"a": 1}, "x": {"z": NaN}}', "the score of query 'x' and document 'z' is nan"),
        (json.dumps({"q1": {"a": 10**400}}), "is 10{39}, expected a number"),
        (predictions(RUN, **{**OURS, "task": "CoREB-C2C-CrossLang"}), "for CoREB-C2C-CrossLang, expected CoREB-C2C "),
        ("{", "cannot be read as JSON"),
        ('{"q1": {"b": 1}, "q1": {"b": 2}}', "stands twice: 'q1'"),
        ('{"q1": {"b": 1, "b": 2}}', "'q1' stands twice: 'b'|stands twice: 'b'"),
        ('{"q1": ["b"]}', "expected documents and scores of query 'q1', got .'b'"),
        ('{"q1": {"z": 1}}', "document 'z' of query 'q1' is not in the corpus"),
        ('{"q1": {"b": NaN}}', "the score of query 'q1' and document 'b' is nan"),
        ('{"q1": {"b": 1e39}}', "is 1e.39, expected a number that is finite in single precision"),
        ('{"q1": {"b": true}}', "is True"),
        ('{"q1": {"b": "1"}}', "is '1'"),
        ('{"q1": {"b": null}}', "is None"),
        (predictions(RUN, **{**OURS, "task": "CoREB-T2C"}), "holds predictions for CoREB-T2C"),
        (predictions(RUN, **{**OURS, "data_hash": {"default": "c" * 64}}), "data with hash cccccccccccc"),
        (predictions({"q1": {"z": 1.0}}, **OURS), "document 'z' of query 'q1' is not in the corpus"),
        (json.dumps({"mteb_model_meta": {}, "default": {}}), "not a prediction file of mteb"),
        (predictions(RUN).replace("default", "forum"), "no predictions for subset default"),
    ],
)
def test_faults_are_named(read, content, expected):
    with pytest.raises(PredictionsError, match=expected):
        read(content)


def test_a_file_that_is_not_there_is_named(tmp_path, data):
    with pytest.raises(PredictionsError, match=r"none\.trec: cannot be read.*Name a run file that exists"):
        read_run(tmp_path / "none.trec", TASK, {"default": data})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (LINES + "x Q0 z 1 1 tag\n", ["1 queries are not the task's and are left out, the first: ['x']"]),
        ("q1 Q0 b 1 0.9 tag\n", ["no result for 1 of 2 queries, which score 0, the first: ['q2']"]),
        (json.dumps({"q1": {}, "q2": {"a": 1}}), ["no result for 1 of 2 queries"]),
        (LINES + "q2 Q0 b 2 0 tag\n", ["ranks and scores disagree for 1 queries, the first: 'q2'"]),
        (LINES + "q2 Q0 b 0 -1 tag\n", ["ranks and scores disagree for 1 queries, the first: 'q2'"]),
        (LINES + "q2 Q0 b 2 -0.03 tag\n", ["ranks and scores disagree"]),  # a tie: b comes first
        (LINES + "q2 Q0 b 0 -0.03 tag\n", []),
        (LINES.replace("q1 Q0 b", "q1 Q0 a"), []),
        ("q1 Q0 a 1 9 t\nq2 Q0 a 1 9 t\n", ["query 'q1' has 1 documents, one of them excluded; if the run was cut"]),
        (predictions(RUN), ["does not say which data its predictions are of"]),
    ],
)
def test_what_a_reader_must_know_is_a_warning(read, content, expected):
    warnings = read(content).warnings
    assert len(warnings) == len(expected)
    assert all(part in warning for part, warning in zip(expected, warnings, strict=True))


def test_ids_read_back_from_every_form_that_an_export_writes(read, hostile):
    data = hostile(["Модуль Объекта", "100%", "q"], ["q", "a b"])
    expected = {"q": {"Модуль Объекта": 2.0, "100%": 1.0}, "a b": {"q": 1.0}}
    rows = "Q0 Модуль%20Объекта 1 2 t", "Q0 100%25 2 1 t", "Q0 q 1 1 t"
    trec = f"q {rows[0]}\nq {rows[1]}\na%20b {rows[2]}\n"
    assert read(trec, data=data).runs["default"] == expected
    assert read(trec.replace("100%25", "100%"), data=data).runs["default"] == expected
    assert read(json.dumps(expected), data=data).runs["default"] == expected
    prefixed = {f"query-{query}": scores for query, scores in expected.items()}
    assert read(json.dumps(prefixed), data=data).runs["default"] == expected


def test_numbers_of_numpy_and_ids_that_are_numbers_are_taken(hostile):
    data = hostile(["1", "2"], ["7"])
    run = {7: {1: np.float32(0.5), np.int64(2): np.int64(3)}}
    assert take_run(run, {"default": data}, "here").runs["default"] == {"7": {"1": 0.5, "2": 3.0}}
    for score in (np.bool_(True), np.float32("nan"), np.float64("inf")):
        with pytest.raises(PredictionsError, match="here: the score of query '7' and document '1' is"):
            take_run({7: {1: score}}, {"default": data}, "here")
    with pytest.raises(PredictionsError, match="document '1' of query '7' stands a second time"):
        take_run({7: {1: 0.5, "1": 0.5}}, {"default": data}, "here")
    with pytest.raises(PredictionsError, match="two of its queries mean query '7', the second is '7'"):
        take_run({7: {1: 0.5}, "7": {1: 0.5}}, {"default": data}, "here")


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("score", [repr(LARGEST), repr(-LARGEST), "3.4028235e38"])
def test_the_largest_number_of_single_precision_is_one(read, score):
    """Rankers mask with it."""
    assert read(LINES + f"q2 Q0 b 0 {score} tag\n").runs["default"]["q2"]["b"] == float(score)
    assert read(json.dumps({"q2": {"b": float(score)}})).runs["default"] == {"q2": {"b": float(score)}}


def test_a_run_of_one_subset_of_several_is_asked_for_which(tmp_path, hostile):
    data = {"any": hostile(["a", "b"], ["q1"]), "go": hostile(["a", "b"], ["q2"])}
    (tmp_path / "run").write_text("q1 Q0 a 1 1 t\n")
    with pytest.raises(PredictionsError, match=r"has no query of subset go. Name the subsets"):
        read_run(tmp_path / "run", TASK, data)


tokens = st.sampled_from(
    ["q1", "q2", "x", "a", "b", "c", "1", "2", "0.5", "-1e3", "nan", "1_0", "", " ", "\u00e9", '"a"']
)
good = st.tuples(st.sampled_from(["q1", "q2", "x"]), st.sampled_from("abc"), st.integers(0, 3), st.floats(-2, 2))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(
    lines=st.lists(
        good.map(lambda row: f"{row[0]} Q0 {row[1]} {row[2]} {row[3]} t")
        | st.lists(tokens, min_size=4, max_size=7).map(" ".join),
        min_size=1,
        max_size=6,
    ),
    tabs=st.booleans(),
)
def test_columns_at_a_time_and_line_by_line_read_alike(read, data, lines, tabs):
    """Where the quick reader reads a file at all."""
    content = "".join(f"{line}\n" for line in lines)

    def outcome(read):
        try:
            found = read()
        except PredictionsError as error:
            return str(error)
        return found.runs, sorted(found.warnings)

    content = content.replace(" ", "\t") if tabs else content
    with mock.patch("coreb_tasks.interop.runs._read_columns", return_value=None):
        expected = outcome(lambda: read(content))
    assert outcome(lambda: read(content)) == expected


def test_a_folder_holds_a_run_for_each_subset(tmp_path, hostile):
    task = TASKS["1C-Ebench"]
    data = {"forum": hostile(["1", "2"], ["1", "2"]), "fastcode": hostile(["1", "3"], ["1", "3"])}
    (tmp_path / "forum.trec").write_text("1 Q0 2 1 1 t\n2 Q0 2 1 1 t\n")
    with gzip.open(tmp_path / "fastcode.json.gz", "wt") as out:
        json.dump({"1": {"3": 1}, "3": {"3": 1}}, out)
    found = read_run(tmp_path, task, data)
    assert found.runs == {"forum": {"1": {"2": 1.0}, "2": {"2": 1.0}}, "fastcode": {"1": {"3": 1.0}, "3": {"3": 1.0}}}
    assert found.warnings == []
    with pytest.raises(PredictionsError, match=r"query '1' is in subset forum and in subset fastcode.*Name one --sub"):
        read_run(tmp_path / "forum.trec", task, data)
    (tmp_path / "fastcode.json.gz").rename(tmp_path / "other")
    with pytest.raises(PredictionsError, match=r"expected fastcode.trec or fastcode.json .* holds none"):
        read_run(tmp_path, task, data)


def test_one_file_does_for_subsets_whose_queries_differ(tmp_path, hostile):
    data = {"any": hostile(["a", "b"], ["q1"]), "go": hostile(["a", "b"], ["q2"])}
    file = tmp_path / "run"
    file.write_text("q1 Q0 a 1 1 t\nq2 Q0 b 1 1 t\n")
    assert read_run(file, TASK, data).runs == {"any": {"q1": {"a": 1.0}}, "go": {"q2": {"b": 1.0}}}


floats = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100)


@given(st.lists(floats | st.sampled_from([0.0, -0.0, 1e-45, 30.5]), max_size=40))
def test_written_scores_fall_strictly_in_single_precision_and_keep_the_order(scores):
    ranked = dict(enumerate(sorted(scores, reverse=True)))
    written = list(strictly_decreasing(ranked))
    assert [document for document, _ in written] == list(ranked)
    values = np.array([float(repr(score)) for _, score in written], dtype=np.float32)
    assert (np.diff(values) < 0).all()
    assert all(np.float32(score) == score for _, score in written)


def test_scores_that_fall_already_stay_as_they_are_and_ties_move_by_little():
    assert dict(strictly_decreasing({"a": 2.0, "b": 1.5, "c": 0.25})) == {"a": 2.0, "b": 1.5, "c": 0.25}
    tied = [score for _, score in strictly_decreasing({"a": 0.0, "b": 0.0, "c": 0.0})]
    assert tied == pytest.approx([0.0, -1e-7, -2e-7], abs=1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(["q1", "q2"]),
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0.0, 0.5, 0.5 + 1e-9, 1.0, -3.0]), min_size=1),
        min_size=1,
    )
)
@pytest.mark.parametrize("ending", ["trec", "trec.gz"])
def test_a_written_run_ranks_alike_in_pytrec_eval(tmp_path_factory, data, ending, run):
    file = tmp_path_factory.mktemp("run") / f"run.{ending}"
    write_trec(file, run, data, tag="org/my model")
    with (gzip.open if ending.endswith("gz") else open)(file, "rt") as lines:
        read = pytrec_eval.parse_run(lines)
    excluded = {query: data.excluded.get(query, frozenset()) for query in run}
    expected = {
        query: sorted(set(scores) - excluded[query], key=lambda d: (np.float32(scores[d]), d), reverse=True)
        for query, scores in run.items()
        if set(scores) - excluded[query]
    }
    assert {query: sorted(scores, key=scores.get, reverse=True) for query, scores in read.items()} == expected


def test_a_written_run_reads_back(tmp_path, data):
    write_trec(tmp_path / "run.trec", RUN, data, tag="t")
    write_beir(tmp_path / "run.json", RUN, data)
    for name in ("run.trec", "run.json"):
        found = read_run(tmp_path / name, TASK, {"default": data}).runs["default"]
        assert {q: list(ranked) for q, ranked in found.items()} == {"q1": ["b", "d"], "q2": ["a"]}
        assert found["q1"] == pytest.approx(RUN["q1"], rel=1e-6)
    with pytest.raises(FileExistsError):
        write_trec(tmp_path / "run.trec", RUN, data, tag="t")
