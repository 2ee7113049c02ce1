"""`roost chart`: write what is generated from `templates/`."""

from __future__ import annotations

import sys

from generator.compile.chart import CompileError, check_fresh, write_chart
from generator.compile.python import check_python, write_python
from generator.faults import GeneratorError
from generator.locations import checkout


def run(*, only_check: bool) -> int:
    """Write the chart's generated files, or tell whether they are fresh."""
    root = checkout()
    try:
        chart, module = (check_fresh, check_python) if only_check else (write_chart, write_python)
        stale = [*chart(root), *module(root)]
    except CompileError as error:
        raise GeneratorError(str(error)) from None
    for path in stale:
        sys.stdout.write(f"{path}\n")
    if only_check and stale:
        sys.stderr.write("These files don't come from templates/ as it is. Run: roost chart\n")
        return 1
    return 0
