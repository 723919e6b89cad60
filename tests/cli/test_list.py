"""``coreb-tasks list``, and what all subcommands share."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from coreb_tasks.cli import SUBCOMMANDS, main
from coreb_tasks.facts import OVERALLS, TASKS


@pytest.fixture
def rows(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [re.split(r" {2,}", line.strip()) for line in lines if line.strip(" ─")]


def test_every_task_is_listed_once_in_the_order_of_the_table(rows):
    assert rows[0] == ["task", "subsets", "documents", "queries", "relevant", "data"]
    assert [row[0] for row in rows[1:]] == [*TASKS, *OVERALLS]


@pytest.mark.parametrize(
    "expected",
    [
        ["CoREB-T2C", "1,744", "1,123", "2,814", "hq-bench/coreb (release_v2603)"],
        ["CoREB-C2C-v202602", "1,670", "169", "367", "hq-bench/coreb (release_v2602)"],
        ["CoREB-C2T-Match", "875", "380", "190", "hq-bench/coreb (release_v2603)"],
        ["1C-Ebench-Sample", "forum, fastcode", "26", "26", "26", "coreb-tasks/onec_ebench (test)"],
    ],
    ids=lambda row: row[0],
)
def test_a_row_has_the_subsets_the_size_and_the_place_of_its_data(rows, expected):
    assert expected in rows


def test_sizes_that_only_a_paper_states_say_so(rows):
    (row,) = [row for row in rows if row[0] == "CPRet-P2Dup"]
    assert row[1:4] == ["10,900", "168", "202"]
    assert row[4].endswith("sizes as stated in arXiv:2505.12925, table 1, rounded")


@pytest.mark.parametrize(("page", "options"), [("tasks.md", []), ("models.md", ["--models"])], ids=str)
def test_the_tables_of_the_docs_are_the_registrys(capsys, page, options):
    assert main(["list", *options, "--markdown"]) == 0
    docs = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    assert capsys.readouterr().out in docs, "write it anew"


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"coreb-tasks {version('coreb-tasks')}\n"


@pytest.mark.parametrize("arguments", [[], ["lst"], ["report"], ["list", "--all"]], ids=str)
def test_a_wrong_call_says_how_to_call(capsys, arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: coreb-tasks" in capsys.readouterr().err


def test_help_names_every_subcommand_with_its_summary(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["--help"])
    words = capsys.readouterr().out
    for name, module in SUBCOMMANDS.items():
        assert re.search(rf"^ +{name} +{re.escape(module.__doc__.splitlines()[0])}$", words, re.MULTILINE)


def test_the_command_is_this_program():
    (command,) = entry_points(group="console_scripts", name="coreb-tasks")
    assert command.load() is main


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise on Windows")
def test_a_reader_that_has_seen_enough_gets_no_traceback():
    program = [sys.executable, "-c", "import sys; from coreb_tasks.cli import main; sys.exit(main(['list']))"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert done.stderr == b""
