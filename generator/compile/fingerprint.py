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
    names = sorted(path.relative_to(templates).as_posix() for path in templates.rglob("*.yaml.j2"))
    for folder, name in [*((templates, name) for name in names), *((chart, name) for name in _CHART_FILES)]:
        data = (folder / name).read_bytes()
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()
