"""The page: one file with all tables and plots, which asks for nothing from anywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

from coreb_tasks.reports.formats import Part
from coreb_tasks.reports.plots import plots
from coreb_tasks.reports.sections import Section

EXTRA = ("jinja2", "matplotlib")


class MissingExtraError(RuntimeError):
    """What the page is made with is not installed. Says how to install it."""


def render(parts: Sequence[Part], sections: Sequence[Section]) -> str:
    """The page with these tables, and the plots of these benchmarks.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not there.
    """
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"the page needs {' and '.join(missing)}, of the extra `report`: pip install 'coreb-tasks[report]'"
        )
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("coreb_tasks.reports", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["zip"] = partial(zip, strict=True)
    environment.filters["slug"] = lambda name: re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    drawn = {section.suite.name: plots(section) for section in sections}
    suites = {section.suite.name: section.suite for section in sections}
    ordered = sorted(parts, key=lambda part: part.benchmark == "")  # what people look for first
    return environment.get_template("report.html.jinja").render(parts=ordered, plots=drawn, suites=suites)
