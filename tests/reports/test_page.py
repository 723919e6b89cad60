"""The page: what it holds, and what a browser makes of it."""

import json
import math
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from coreb_tasks.cli import main
from coreb_tasks.reports.formats import Part
from coreb_tasks.reports.page import render
from coreb_tasks.reports.plots import pareto_front, plots
from coreb_tasks.reports.scores import Run, Scores
from coreb_tasks.reports.sections import REPORTED, sections
from coreb_tasks.reports.tables import details, tables

RESULTS = Path(__file__).parent / "results"
SUITES = ("CoREB(v202603)", "CoREB(sample)", "CPRet(v1)", "1C-Ebench(sample)")


class Cells(HTMLParser):
    """The tables of a page: rows of (exact value or None, shown text)."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.cell = [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = [dict(attributes).get("data-value"), ""]
            self.tables[-1][-1].append(self.cell)

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[1] += data


def texts(svg):
    nodes = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 (our own)
    return ["".join(node.itertext()) for node in nodes]


def drawn(page):
    """The SVG of each plot of a page, by the benchmark's section and the plot's name."""
    found = {}
    for section in page.split("<section id=")[1:]:
        for figure in section.split("<figure data-plot=")[1:]:
            svg = re.search("<svg.*</svg>", figure.split("</figure>")[0], flags=re.DOTALL)
            if svg:
                found[section.split('"')[1], figure.split('"')[1]] = svg[0]
    return found


@pytest.fixture(scope="module")
def made(recorded):
    """The sections of the page with the papers' scores, its parts, and the page."""
    found = sections(recorded, [REPORTED[name] for name in SUITES], reference=True)
    parts = [
        *(Part(section.suite.name, tables(section)) for section in found),
        Part("", [details(recorded, slices=True)]),
    ]
    return found, parts, render(parts, found)


def test_every_figure_of_the_page_is_that_of_its_table(made):
    _, parts, page = made
    expected = [table for part in parts for table in part.tables]
    found = Cells(page).tables
    assert len(found) == len(expected)
    for table, (head, *rows) in zip(expected, found, strict=True):
        assert [text for _, text in head] == [column.title for column in table.columns]
        assert [[text for _, text in row] for row in rows] == table.text("–")
        for row, cells in zip(table.rows, rows, strict=True):
            for column, cell, (value, text) in zip(table.columns, row.cells, cells, strict=True):
                if column.kind != "text":
                    assert value == ("" if cell is None else str(cell))
                    assert (text == "–") == (cell is None)


PLOTTED = {"languages": None, "subtasks": None, "reranking": "difference", "intrusion": "intrusion@10"}


def test_figures_in_plots_are_those_of_the_tables(made):
    found, _, page = made
    svgs = drawn(page)
    for section in found:
        held = {table.name: table for table in tables(section)}
        slug = re.sub(r"\W+", "-", section.suite.name.lower()).strip("-")
        for name, only in PLOTTED.items():
            assert ((slug, name) in svgs) == (name in held)
            if name in held:
                shown = {match[0] for text in texts(svgs[slug, name]) if (match := re.match(r"[-+]?\d\.\d{3}\b", text))}
                assert shown == {
                    f"{cell:+.3f}" if column.kind == "difference" else f"{cell:.3f}"
                    for row in held[name].rows
                    for column, cell in zip(held[name].columns, row.cells, strict=True)
                    if cell is not None
                    and column.name == (only or column.name)
                    and column.kind in ("score", "difference")
                }


def test_a_plot_without_data_says_what_it_needs(section):
    by_name = {plot.name: plot for plot in plots(section("1C-Ebench(sample)"))}
    assert {name for name, plot in by_name.items() if plot.svg} == {"difficulty"}
    assert by_name["reranking"].note == "Not drawn: it needs results of reranking tasks."
    assert "mteb/baseline-bm25s" in by_name["parameters"].note


def test_runs_at_several_dimensions_make_a_curve(made):
    svg = drawn(made[2])["coreb-sample", "dimensions"]
    assert {"10", "32", "mteb/baseline-random-encoder (2)"} <= set(texts(svg))


def test_models_without_a_number_of_parameters_are_named_under_the_plot(section):
    sized, unsized, partial = (Run(f"org/{name}", parameters=n) for name, n in (("a", 7_000_000), ("b", 0), ("c", 1)))
    held = [(sized, "forum"), (sized, "fastcode"), (unsized, "forum"), (unsized, "fastcode"), (partial, "forum")]
    found = [Scores(run, "1C-Ebench", subset, {"ndcg_at_10": 0.5, "n_queries": 1}) for run, subset in held]
    (plot,) = (plot for plot in plots(section("1C-Ebench(v1)", found)) if plot.name == "parameters")
    assert "1  org/a" in texts(plot.svg)
    assert "not known or 0: org/b." in plot.note
    assert "mean is missing: org/c." in plot.note


def test_the_pareto_front_holds_what_no_smaller_or_equal_model_beats():
    points = [("a", 1, 0.3), ("b", 1, 0.4), ("c", 2, 0.4), ("d", 3, 0.6), ("e", 9, 0.5)]
    assert [name for name, _, _ in pareto_front(points)] == ["b", "d"]
    assert pareto_front([]) == []


def test_the_page_is_the_same_each_time(section):
    once = section("CoREB(v202603)")
    parts = [Part(once.suite.name, tables(once))]
    assert render(parts, [once]) == render(parts, [once])


def test_the_page_names_no_other_address_and_forbids_requests(made):
    page = made[2]
    assert "default-src 'none'" in page
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) <= namespaces
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b|\bsrc=|@import|url\((?!#)", page)


def test_identifiers_are_unique_and_references_are_met(made):
    identifiers = re.findall(r'\bid="([^"]*)"', made[2])
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', made[2])) <= set(identifiers)


NASTY = "<script>alert(1)</script>$x^2$&\"'"


@pytest.fixture
def nasty():
    found = [
        Scores(Run(NASTY, parameters=1000), task, "default", {"ndcg_at_10": score, "n_queries": 2, **slices})
        for task, score in (("CoREB-T2C", 0.25), ("CoREB-C2C", math.nan), ("CoREB-C2T", 0.75))
        for slices in [{f"ndcg_at_{k}": score for k in (1, 5)} | {"language=go/ndcg_at_10": score}]
    ]
    made = sections(found, [REPORTED["CoREB(v202603)"]], reference=False)
    return render([Part(section.suite.name, tables(section)) for section in made], made)


def test_names_of_models_are_escaped(nasty):
    assert "<script>alert" not in nasty
    assert nasty.count("<script>") == 1
    rows = Cells(nasty).tables[0][1:]
    assert rows[0][0][1] == NASTY
    svg = nasty[nasty.index("<svg") : nasty.index("</svg>") + 6]
    assert NASTY in texts(svg)


# -- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not installed (Debian: apt install chromium chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page as the command writes it."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    benchmarks = ["--benchmark", "CoREB(v202603)", "CoREB(sample)"]
    assert main(["report", str(RESULTS), "--reference", *benchmarks, "--out", str(file)]) == 0
    return file


@pytest.fixture
def opened(browser, file):
    """The page, open on a desktop."""
    browser.get_log("performance")
    browser.set_window_size(1280, 900)
    browser.get(file.as_uri())
    return browser


LEADERBOARD = '#coreb-v202603 table[data-table="leaderboard_ndcg_at_10"]'


def column(browser, name):
    """The texts of a column of the leaderboard, from top to bottom."""
    heads = browser.find_elements("css selector", f"{LEADERBOARD} th")
    position = next(n for n, head in enumerate(heads, start=1) if head.text.startswith(name))
    return [cell.text for cell in browser.find_elements("css selector", f"{LEADERBOARD} td:nth-child({position})")]


def press(browser, name):
    for head in browser.find_elements("css selector", f"{LEADERBOARD} th"):
        if head.text.startswith(name):
            head.find_element("css selector", "button").click()
            return head.get_attribute("aria-sort")
    raise AssertionError(name)


@pytest.mark.browser
def test_a_table_is_sorted_by_a_click_and_missing_values_stay_last(opened, tmp_path):
    assert column(opened, "model")[-1] == "mteb/baseline-bm25s"
    assert press(opened, "CoREB-C2C") == "descending"
    assert column(opened, "CoREB-C2C")[:2] == ["0.698", "0.677"]
    assert press(opened, "CoREB-C2C") == "ascending"
    assert column(opened, "CoREB-C2C")[0] == "0.29829"
    assert column(opened, "model")[0] == "mteb/baseline-bm25s"
    for _ in range(2):  # BM25 alone has a macro mean: the papers state none
        press(opened, "macro")
        assert column(opened, "macro") == ["0.22486", *["–"] * 11]
    opened.save_screenshot(str(tmp_path / "desktop.png"))
    assert (tmp_path / "desktop.png").stat().st_size > 10_000


@pytest.mark.browser
def test_a_table_is_sorted_from_the_keyboard(opened):
    button = opened.find_element("css selector", f"{LEADERBOARD} th button")
    button.send_keys("\ue007")  # Enter
    names = column(opened, "model")
    assert names == sorted(names, key=str.lower)


@pytest.mark.browser
def test_no_request_leaves_the_page_and_nothing_is_complained_of(opened):
    press(opened, "CoREB-T2C")
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert {address.split(":")[0] for address in asked} == {"file"}
    assert len(asked) == 1
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert opened.get_log("browser") == []


@pytest.mark.browser
def test_a_phone_scrolls_tables_and_plots_in_their_own_boxes(opened, tmp_path):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert opened.execute_script("return document.documentElement.scrollWidth") == 390
        box = opened.find_element("css selector", f"#coreb-v202603 .box:has({LEADERBOARD.split()[1]})")
        assert opened.execute_script("return arguments[0].scrollWidth > arguments[0].clientWidth", box)
        opened.save_screenshot(str(tmp_path / "phone.png"))
        assert (tmp_path / "phone.png").stat().st_size > 10_000
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.browser
def test_without_javascript_all_but_sorting_is_there(opened):
    opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened.refresh()
        assert opened.find_elements("css selector", "th button") == []
        assert column(opened, "CoREB-C2C")[0] == "0.698"
        assert opened.find_element("css selector", "#coreb-v202603 figure svg").is_displayed()
    finally:
        opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
