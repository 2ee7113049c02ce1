"""Give what `roost chart` compiled, as long as it fits the templates and the chart's data on disk."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from generator.compile.fingerprint import fingerprint
from generator.locations import chart_folder, templates_folder

if TYPE_CHECKING:
    from types import ModuleType


@cache
def compiled() -> ModuleType | None:
    """The module generator/compile/compiled_templates.py; None when it is missing or stale."""
    try:
        from generator.compile import compiled_templates  # noqa: PLC0415 - may be missing in a checkout
    except ImportError:
        return None
    is_fresh = fingerprint(templates_folder(), chart_folder()) == compiled_templates.FINGERPRINT
    return compiled_templates if is_fresh else None
