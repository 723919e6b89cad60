"""The scores that tables on the terminal show of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coreb_tasks.facts import MAIN_SCORE

SHOWN = {
    "queries": "n_queries",
    "nDCG@10": MAIN_SCORE,
    "Recall@10": "recall_at_10",
    "MRR@10": "mrr_at_10",
    "intrusion": "hard_negative_intrusion_at_10",
}


def cells(values: Mapping[str, Any], part: str = "") -> list[str]:
    """The shown scores of a result, or of a part of it (``t2c_search_go``); "-" for those that it lacks."""
    prefix = f"{part}/" if part else ""
    found = (values.get(prefix + key) for key in SHOWN.values())
    return ["-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.5f}" for value in found]


def parts(values: Mapping[str, Any]) -> list[str]:
    """The parts that a result has scores of, in their order."""
    return list(dict.fromkeys(key.rsplit("/", 1)[0] for key in values if "/" in key))
