"""Write what the chart has of `templates/`: each Jinja2 template as a Go template of the same
layout.

.venv/bin/python -m tools.write_chart            write it
.venv/bin/python -m tools.write_chart --check    exit 1 unless it is fresh
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.compile.chart import write_chart
from tools.compile.expressions import CompileError
from tools.root import ROOT

WRITER = "python -m tools.write_chart"


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the chart's generated files, or name those that aren't fresh."""
    if arguments not in ([], ["--check"]):
        print(f"usage: {WRITER} [--check]", file=sys.stderr)
        return 2
    try:
        stale = write_chart(root, checks=bool(arguments))
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    for path in stale:
        print(path)
    if arguments and stale:
        print(
            f"These files don't come from templates/ as it is. Write them: {WRITER}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
