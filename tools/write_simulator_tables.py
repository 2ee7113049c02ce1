"""Write the tables of lab/docs/simulator.md that the code knows: shipped policies, bounds and
assumptions.

.venv/bin/python -m tools.write_simulator_tables            write them
.venv/bin/python -m tools.write_simulator_tables --check    exit 1 unless they are fresh
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roost_lab.simulator.engine.bounds import BOUNDS, FigureBound
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import list_assumptions
from roost_lab.simulator.setup.shipped import describe, policy_files
from tools.generated_file import write_or_check

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAGE: Final = Path(__file__).resolve().parent.parent / "lab" / "docs" / "simulator.md"
WRITER: Final = "python -m tools.write_simulator_tables"


def page(text: str) -> str:
    """The page with its tables anew. Raises ValueError where a place for one is missing."""
    tables = {
        "policies": _table(
            ("policy", "what it is"), ((f"`{name}`", describe(name)) for name in policy_files())
        ),
        "bounds": _table(
            ("figure", "what it says"), ((_name_of(bound), bound.says) for bound in BOUNDS)
        ),
        "assumptions": _table(
            ("assumption", "as usual", "what it is"),
            ((f"`{row.name}`", row.value, row.about) for row in list_assumptions(Assumptions())),
        ),
    }
    for name, table in tables.items():
        begin = f"<!-- {name}: written by {WRITER} -->\n"
        end = f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found or not found_end:
            raise ValueError(
                f"{PAGE.name}: no place for {name}: expected the lines {begin!r} and {end!r}"
            )
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def _name_of(bound: FigureBound) -> str:
    """A bound's figure, with the bound's key where that is another word."""
    return f"`{bound.beside}`" + ("" if bound.key == bound.beside else f" ({bound.key})")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the tables, or check them."""
    return write_or_check([(PAGE, page(PAGE.read_text(encoding="utf-8")))], arguments, WRITER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
