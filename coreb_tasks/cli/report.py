"""Report the scores of MTEB result files: leaderboards and tables, and a page with plots."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from coreb_tasks.cli.console import fail, print_table
from coreb_tasks.reports import formats
from coreb_tasks.reports.formats import FORMATS, Part
from coreb_tasks.reports.scores import Scores, read
from coreb_tasks.reports.sections import REPORTED, Section, sections, suite_of
from coreb_tasks.reports.tables import details, tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        nargs="*",
        type=Path,
        metavar="RESULTS",
        help="folders with MTEB results (mteb run's --output-folder), or files; none with --reference alone",
    )
    parser.add_argument("--benchmark", nargs="+", metavar="NAME", help=f"only these: {', '.join(REPORTED)}")
    parser.add_argument("--reference", action="store_true", help="the papers' scores beside your own")
    parser.add_argument("--slices", action="store_true", help="also a row for each subtask and language of a result")
    parser.add_argument("--format", choices=("terminal", *FORMATS), default="terminal", help="of the printed tables")
    parser.set_defaults(wrong_call=parser.error)
    parser.add_argument("--out", type=Path, metavar="FILE.html", help="also write a page with all tables and plots")


def run(options: argparse.Namespace) -> int:
    named = [name for name in options.benchmark or () if name not in REPORTED and Path(name).exists()]
    if named:
        options.wrong_call(f"--benchmark took {', '.join(named)} for benchmarks; put RESULTS before it")
    if not options.results and not options.reference:
        options.wrong_call("no RESULTS; expected the folder that mteb wrote results to, or --reference alone")
    faults = [f"unknown benchmark {name}{_closest(name)}" for name in options.benchmark or () if name not in REPORTED]
    if options.out is not None and (options.out.suffix != ".html" or not options.out.parent.is_dir()):
        faults.append(f"--out {options.out}: expected the name of a file that ends with .html, in a folder that exists")
    if faults:
        return fail("report", faults)
    found, faults = read(options.results)
    shown = [scores for scores in found if suite_of(scores.task) in (options.benchmark or REPORTED)]
    made = _sections(shown, options)
    absent = set(options.benchmark or ()) - {section.suite.name for section in made}
    faults += [f"{name}: no scores on it among the results" for name in REPORTED if name in absent]
    if made:
        faults += _show(shown, made, options)
    return fail("report", faults) if faults else 0


def _sections(shown: Sequence[Scores], options: argparse.Namespace) -> list[Section]:
    """One's own benchmarks, or those asked for; all that are published where there are neither."""
    own = {suite_of(scores.task) for scores in shown}
    wanted = options.benchmark or own or REPORTED
    return sections(shown, [REPORTED[name] for name in REPORTED if name in wanted], reference=options.reference)


def _show(shown: Sequence[Scores], made: Sequence[Section], options: argparse.Namespace) -> list[str]:
    """Print the tables and write the page. Returns what went wrong."""
    parts = [Part("", [details(shown, slices=options.slices)])] if shown else []
    parts += [Part(section.suite.name, tables(section)) for section in made]
    if options.format == "terminal":
        for part in parts:
            for table in part.tables:
                if table.name != "details":
                    print(f"{formats.title(part, table)}\n")
                if options.reference and table.name != "details":
                    print(f"{table.note}\n")
                numbers = [position for position, column in enumerate(table.columns) if column.kind != "text"]
                print_table([column.title for column in table.columns], table.text("-"), numbers=numbers)
    else:
        print(FORMATS[options.format](parts), end="")
    if options.out is None:
        return []
    from coreb_tasks.reports.page import MissingExtraError, render

    try:
        options.out.write_text(render(parts, made), encoding="utf-8")
    except (MissingExtraError, OSError) as error:
        return [f"--out {options.out}: {error}"]
    return []


def _closest(name: str) -> str:
    close = get_close_matches(name, REPORTED, n=1)
    return f", did you mean {close[0]}?" if close else f"; expected one of {', '.join(REPORTED)}"
