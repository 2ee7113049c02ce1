"""Tell whether what was generated from the templates and the chart's data still fits them."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_CHART_FILES: Final = ("Chart.yaml", "values.yaml", "values.schema.json")


def fingerprint(templates: Path, chart: Path) -> str:
    """Digest of the names and bytes of all templates, the defaults, the schema and the chart's versions."""
    digest = sha256()
    names = sorted(path.name for path in templates.iterdir() if path.name.endswith(".yaml.j2"))
    for path in [*(templates / name for name in names), *(chart / name for name in _CHART_FILES)]:
        data = path.read_bytes()
        digest.update(f"{path.name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()
