"""A ``ModelMeta`` for each row of the table of models."""

from __future__ import annotations

from mteb.models import ModelMeta

MODELS: dict[str, ModelMeta] = {}
