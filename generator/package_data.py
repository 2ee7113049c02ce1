"""Find the folders of the chart and the templates.

They are package data once Roost is installed, and stand next to the packages in a checkout.
"""

from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent
_DATA: Final = _ROOT / "roost" / "data"


def chart_folder() -> Path:
    """Folder with Chart.yaml, values.yaml and values.schema.json."""
    return _folder("chart")


def templates_folder() -> Path:
    """Folder with the */*.yaml.j2 that make the objects."""
    return _folder("templates")


def _folder(name: str) -> Path:
    packaged = _DATA / name
    return packaged if packaged.is_dir() else _ROOT / name
