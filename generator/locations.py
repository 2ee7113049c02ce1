"""Find the chart and the templates: package data once installed, folders beside the packages in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from generator.faults import UsageError

_ROOT: Final = Path(__file__).resolve().parent.parent
_DATA: Final = _ROOT / "roost" / "data"


def chart_folder() -> Path:
    """Folder with Chart.yaml, values.yaml and values.schema.json."""
    return _folder("chart")


def templates_folder() -> Path:
    """Folder with the */*.yaml.j2 that make the objects."""
    return _folder("templates")


def checkout() -> Path:
    """Root of the checkout, for what writes generated files. Raises UsageError once installed."""
    if not (_ROOT / "templates").is_dir():
        raise UsageError("roost chart: no templates/ folder. The command works only in a checkout of Roost's source.")
    return _ROOT


def _folder(name: str) -> Path:
    packaged = _DATA / name
    return packaged if packaged.is_dir() else _ROOT / name
