"""`roost preset`: values files that come with the chart, to start from."""

from __future__ import annotations

import sys

from generator.faults import UsageError
from generator.locations import chart_folder


def run(name: str | None) -> int:
    """Print the preset, or without a name what each is for. Raises UsageError for a name that there isn't."""
    found = {path.stem: path for path in sorted((chart_folder() / "presets").glob("*.yaml"))}
    if name is None:
        width = max(map(len, found))
        for stem, path in found.items():
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            sys.stdout.write(f"{stem:{width}}  {first.removeprefix('# ')}\n")
        return 0
    if name not in found:
        raise UsageError(f"roost preset: found {name}, expected one of {', '.join(found)}")
    sys.stdout.write(found[name].read_text(encoding="utf-8"))
    return 0
