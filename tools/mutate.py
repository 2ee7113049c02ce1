"""Change decisions and templates one place at a time, and tell which changes no test notices.

.venv/bin/python -m tools.mutate                         all parts, ten minutes each
.venv/bin/python -m tools.mutate gate mover --minutes 3
.venv/bin/python -m tools.mutate templates --seed 7      another choice of places

Works in a copy of the checkout. Kill a survivor by a test, or take the line out. Exit code 1: tests
noticed a smaller share of a part's changes than --floor; without it, there are survivors.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Part(NamedTuple):
    """Files that are changed, and the tests that hold them, as patterns."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    # Slower tests, tried on the changes that the others don't notice.
    properties: tuple[str, ...] = ()


PARTS: Final[dict[str, Part]] = {
    "rules": Part(
        ("webhook/rules/*.py",),
        ("tests/unit/webhook/test_[a-lopw]*.py", "tests/unit/webhook/test_server_replica.py"),
        ("tests/properties/webhook/test_w*.py", "tests/properties/webhook/test_belief*.py"),
    ),
    "ring": Part(("webhook/rendezvous.py",), ("tests/unit/webhook/test_rendezvous.py",)),
    "patch": Part(
        ("webhook/patch.py", "webhook/binderhub_terms.py"), ("tests/unit/webhook/test_[aghp]*.py",)
    ),
    "gate": Part(
        ("roost/controllers/image_gate/*.py",),
        ("tests/unit/controllers/test_*gate*.py",),
        ("tests/properties/controllers/test_image_gate_properties.py",),
    ),
    "mover": Part(
        ("roost/controllers/placeholder_mover/*.py",),
        ("tests/unit/controllers/test_placeholder_mover*.py",),
        ("tests/properties/controllers/test_placeholder_mover_properties.py",),
    ),
    "headroom": Part(
        (
            "roost/controllers/headroom/*.py",
            "roost_core/placement/headroom_*.py",
            "roost_core/placement/pool_without.py",
        ),
        (
            "tests/unit/controllers/test_headroom*.py",
            "tests/unit/controllers/test_booked_events.py",
            "tests/unit/controllers/test_set_of_user.py",
            "tests/unit/roost_core/test_headroom*.py",
            "tests/unit/roost_core/test_pool_without.py",
        ),
        (
            "tests/properties/controllers/test_headroom_calendar.py",
            "tests/properties/controllers/test_booked_events_properties.py",
            "tests/properties/roost_core/test_headroom_forecast_properties.py",
            "tests/properties/roost_core/test_pool_without_properties.py",
        ),
    ),
    "placeholders": Part(
        ("generator/checks/placeholders.py",),
        ("tests/unit/generator/test_lint*.py", "tests/unit/generator/test_core_pods.py"),
    ),
    "templates": Part(
        ("templates/*/*.j2",),
        ("tests/unit/generator/test_golden.py", "tests/unit/generator/test_generator_render.py"),
        # Who reads release.json.
        ("tests/unit/roost_core/test_readers_of_release.py",),
    ),
}
# A mutant may loop for ever, or wait. A machine that is busy kills none: the processor's time
# counts.
_PROCESSOR_SECONDS: Final = 120
_TEST_SECONDS: Final = 1800.0
_COPIED: Final = (
    "roost",
    "roost_core",
    "generator",
    "webhook",
    "templates",
    "chart",
    "tests",
    "docs",
    "lab",
    "tools",
)
_OPPOSITES: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
}


class Mutant(NamedTuple):
    """One change: the file, the line, what is changed, and the text of the whole file with it, made
    when it is asked for.
    """

    path: Path
    line: int
    change: str
    text: Callable[[], str]


def python_mutants(path: Path, source: str) -> Iterator[Mutant]:
    """Operators turned round, and whole numbers one larger."""
    tree = ast.parse(source)
    nodes = [*ast.walk(tree)]
    # How much a cache holds changes no result.
    sizes = [
        node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "maxsize"
    ]
    for node in nodes:
        if node in sizes:
            continue
        before = dict(vars(node))
        if not _turn_round(node):
            continue
        after = dict(vars(node))
        vars(node).update(before)
        yield Mutant(
            path,
            getattr(node, "lineno", 0),
            ast.unparse(node)[:60],
            partial(_text_with, tree, node, after),
        )


def _text_with(tree: ast.AST, node: ast.AST, fields: dict[str, object]) -> str:
    """The file with other fields in one node."""
    before = dict(vars(node))
    vars(node).update(fields)
    text = ast.unparse(tree)
    vars(node).update(before)
    return text


def _turn_round(node: ast.AST) -> bool:
    """Change a node; False: there is nothing to change in it."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _OPPOSITES:
            node.ops = [_OPPOSITES[type(operator)]()]  # type: ignore[list-item]
        case ast.BoolOp(op=operator):
            node.op = _OPPOSITES[type(operator)]()  # type: ignore[assignment]
        case ast.BinOp(op=operator) if type(operator) in _OPPOSITES:
            node.op = _OPPOSITES[type(operator)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not()):
            node.op = ast.UAdd()
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            node.value = value + 1
        case _:
            return False
    return True


def template_mutants(path: Path, source: str) -> Iterator[Mutant]:
    """Lines left out, and conditions turned round."""
    lines = source.splitlines(keepends=True)
    in_comment = False
    for index, line in enumerate(lines):
        in_comment = in_comment or line.startswith("{#")
        if in_comment:
            in_comment = "#}" not in line
            continue
        said = line.strip()
        if condition := re.fullmatch(r"\{% if (.*) %\}", said):
            changed = line.replace(condition[1], f"not ({condition[1]})")
            what = f"not: {condition[1]}"
        elif said and not said.startswith(("{%", "#", "---")):
            changed = ""
            what = f"without: {said}"
        else:
            continue
        text = "".join([*lines[:index], changed, *lines[index + 1 :]])
        yield Mutant(path, index + 1, what[:60], partial(str, text))


def survives(folder: Path, tests: Sequence[str]) -> bool:
    """Whether the tests pass in `folder`; no tests always do."""
    if not tests:
        return True
    files = [str(path) for pattern in tests for path in sorted(folder.glob(pattern))]
    command = [
        "sh",
        "-c",
        'ulimit -t "$0" && exec "$@"',
        str(_PROCESSOR_SECONDS),
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        *files,
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}:{folder / 'lab'}",
        "ROOST_HYPOTHESIS_PROFILE": "unshrunk",
    }
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
            timeout=_TEST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


class Source:
    """A file that is changed and put back.

    Python keeps compiled code, and knows by the second of the file's last change whether it is of
    this text. So each text gets a second of its own.
    """

    _seconds: Final = itertools.count(1)

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> None:
        """Replace the text."""
        self._path.write_text(text)
        second = next(self._seconds)
        os.utime(self._path, (second, second))


class Outcome(NamedTuple):
    """How many changes of a part were tried, and how many of them no test noticed."""

    tried: int
    survived: int

    def is_below(self, floor: float) -> bool:
        """Whether tests noticed a smaller share than `floor`, in percent."""
        return 100 * (self.tried - self.survived) < floor * self.tried


def run_part(name: str, folder: Path, minutes: float, chance: random.Random) -> Outcome:
    """Try mutants of one part until the time is up."""
    part = PARTS[name]
    if not (survives(folder, part.tests) and survives(folder, part.properties)):
        sys.exit(f"{name}: the tests fail without any change: mend them first")
    mutants = [
        mutant
        for pattern in part.files
        for path in sorted(folder.glob(pattern))
        for mutant in (template_mutants if path.suffix == ".j2" else python_mutants)(
            path, path.read_text()
        )
    ]
    chance.shuffle(mutants)
    until = time.monotonic() + 60 * minutes
    tried = 0
    survived = 0
    for mutant in mutants:
        if time.monotonic() > until:
            break
        original = mutant.path.read_text()
        source = Source(mutant.path)
        source.write(mutant.text())
        try:
            tried += 1
            if survives(folder, part.tests) and survives(folder, part.properties):
                survived += 1
                print(
                    f"survived: {mutant.path.relative_to(folder)}:{mutant.line}: {mutant.change}",
                    flush=True,
                )
        finally:
            source.write(original)
    print(f"{name}: {tried} of {len(mutants)} changes tried, {survived} survived", flush=True)
    return Outcome(tried, survived)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=10, help="of each part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--floor", type=float, default=100, metavar="PERCENT")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.parts} - {*PARTS}):
        parser.error(f"found {', '.join(unknown)}, expected of {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="roost-mutants-") as scratch:
        folder = Path(scratch)
        for name in _COPIED:
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("pyproject.toml", "conftest.py"):
            shutil.copy(ROOT / name, folder / name)
        chance = random.Random(given.seed)  # noqa: S311 - which places are tried first
        outcomes = [run_part(name, folder, given.minutes, chance) for name in given.parts or PARTS]
    return int(any(outcome.is_below(given.floor) for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
