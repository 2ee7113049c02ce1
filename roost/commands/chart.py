"""`roost chart`: write what is generated from `templates/`."""

from __future__ import annotations

import sys

from generator.compile.chart import check_fresh, write_chart
from generator.compile.expressions import CompileError
from generator.faults import GeneratorError
from generator.locations import checkout


def run(*, only_check: bool) -> int:
    """Write the chart's generated files, or tell whether they are fresh."""
    root = checkout()
    try:
        stale = check_fresh(root) if only_check else write_chart(root)
    except CompileError as error:
        raise GeneratorError(str(error)) from None
    for path in stale:
        sys.stdout.write(f"{path}\n")
    if only_check and stale:
        sys.stderr.write("These files don't come from templates/ as it is. Run: roost chart\n")
        return 1
    return 0
