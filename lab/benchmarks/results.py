"""Measure the figures that pages show, and keep them in `lab/results`, a file for each question.

`python -m benchmarks.results [NAME...]`, or `make figures`: runs the command of each question and
writes the tables that it prints, with the command, the commit and the day. A question isn't
measured again before code changed that may change its figures, so a run that was stopped goes on
where it was.
`--list` says what each file holds. `python -m tools.write_figures` then writes the pages.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.figures import say
from benchmarks.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLDER: Final = ROOT / "lab" / "results"
_COURSE: Final = '--hubs "GPUs: weekly course" --from-day 8 --seeds 2'
# Name of a results file -> the command that measures it, from the top of a checkout.
QUESTIONS: Final[dict[str, str]] = {
    "flagship": "python -m benchmarks.flagship --seeds 3 --results build/flagship.jsonl",
    "felt-day": "python -m benchmarks.felt_day",
    "small-binder": "python -m benchmarks.small_binder",
    "shared-pool": "python -m benchmarks.shared_pool",
    "culling": "python -m benchmarks.culling --seeds 8 --weeks 1",
    "ablation": "python -m benchmarks.ablation",
    "builds": "python -m benchmarks.builds",
    "disks": "python -m benchmarks.disks",
    "any-cloud": "python -m benchmarks.any_cloud",
    "term": (
        "python -m benchmarks.term --seeds 1-20 --arms none fixed imported oracle"
        " --autoscalers cluster-autoscaler --results build/term.jsonl"
    ),
    "term-karpenter": (
        "python -m benchmarks.term --seeds 1-20 --arms none imported --autoscalers karpenter"
        " --results build/term.jsonl"
    ),
    "term-drawn": (
        "python -m benchmarks.term --seeds 2189,2692,2927,3630,3846,4282,4861,5032"
        " --arms none imported --autoscalers cluster-autoscaler --results build/term.jsonl"
    ),
    "term-large": (
        "python -m benchmarks.term --seeds 1-2 --arms none imported --variants ten-times"
        " --autoscalers cluster-autoscaler --results build/term-large.jsonl"
    ),
    "exam": "python -m benchmarks.term --exam --seeds 1-3 --autoscalers cluster-autoscaler",
    "known-before": (
        "python -m benchmarks.term --first-week --seeds 1-10 --autoscalers cluster-autoscaler"
    ),
    "gpu-course": f"python -m benchmarks.learned_headroom {_COURSE}",
    "timetable-by-chance": (
        "python -m benchmarks.learned_headroom --hubs university --first-seed 11 --seeds 2"
        " --days 10 --from-day 9"
    ),
    "never-worse": "python -m benchmarks.never_worse --days 1 --seeds 10",
}
# Folders of the code that decides what a replay comes to.
DECIDING: Final = (
    *("chart", "generator", "roost", "roost_core", "templates", "webhook"),
    *("lab/benchmarks", "lab/roost_lab"),
    ":!lab/benchmarks/results.py",
)
# Figures of the files, and figures that pages had before there were files: the commit brought them.
MEASURED: Final = "measured at"
CARRIED_OVER: Final = "carried over from"
# The first number of a cell: a median stands before its spread.
_NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
# Between the cells of a Markdown table.
_BAR: Final = re.compile(r"(?<!\\)\|")


class ResultsError(ValueError):
    """A results file lacks what a page shows, or a command printed no table."""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of cells as the command printed them. The first cells of a row name it."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def cell(self, heading: str, *names: str) -> str:
        """The cell of the first row that begins with these names. Raises ResultsError."""
        if heading not in self.headings:
            raise ResultsError(f"no column {heading!r}; there are {', '.join(self.headings)}")
        for row in self.rows:
            if row[: len(names)] == names:
                return row[self.headings.index(heading)]
        there = ", ".join(" ".join(row[: len(names)]) for row in self.rows)
        raise ResultsError(f"no row {' '.join(names)!r}; there are {there}")

    def number(self, heading: str, *names: str) -> float:
        """The first number of a cell: its median. Raises ResultsError."""
        cell = self.cell(heading, *names)
        found = _NUMBER.search(cell)
        if found is None:
            raise ResultsError(f"{' '.join(names)}, {heading}: no number in {cell!r}")
        return float(found[0].replace(",", ""))

    def markdown(self) -> str:
        """The table as pages have it."""
        lines = [f"| {' | '.join(self.headings)} |", f"|{'---|' * len(self.headings)}"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Results:
    """What one command measured."""

    command: str
    # The commit that was measured, and the day.
    commit: str
    date: str
    tables: tuple[FigureTable, ...]
    # How the figures belong to the commit, in words: MEASURED or CARRIED_OVER.
    how: str = MEASURED


def path_of(name: str) -> Path:
    """The file of a question."""
    return FOLDER / f"{name}.json"


def read_results(name: str) -> Results:
    """The results of a question. Raises ResultsError: nothing was measured yet."""
    path = path_of(name)
    if not path.exists():
        raise ResultsError(f"{path} is missing: python -m benchmarks.results {name}")
    told = json.loads(path.read_text(encoding="utf-8"))
    tables = tuple(
        FigureTable(tuple(table["headings"]), tuple(tuple(row) for row in table["rows"]))
        for table in told["tables"]
    )
    return Results(told["command"], told["commit"], told["date"], tables, told["how"])


def write_results(name: str, results: Results) -> None:
    """Write the file of a question, a row a line."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    tables = [
        '    {"headings": '
        + _line(table.headings)
        + ',\n     "rows": [\n'
        + ",\n".join(f"       {_line(row)}" for row in table.rows)
        + "]}"
        for table in results.tables
    ]
    text = (
        "{\n"
        f'  "command": {_line(results.command)},\n'
        f'  "commit": {_line(results.commit)},\n'
        f'  "date": {_line(results.date)},\n'
        f'  "how": {_line(results.how)},\n'
        '  "tables": [\n' + ",\n".join(tables) + "]\n}\n"
    )
    path_of(name).write_text(text, encoding="utf-8")


def _line(value: str | Sequence[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


def find_tables(text: str) -> Iterator[FigureTable]:
    """The Markdown tables in what a command printed."""
    lines: list[tuple[str, ...]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in _BAR.split(line.strip())]
            lines.append(tuple(cells[1:-1]))
            continue
        if len(lines) > 1 and all(set(cell) <= set("-:") for cell in lines[1]):
            yield FigureTable(lines[0], tuple(lines[2:]))
        lines = []


def measure(name: str, commit: str) -> Results:
    """Run the command of a question. Raises ResultsError: it failed, or printed no table."""
    command = QUESTIONS[name]
    arguments = shlex.split(command)
    (ROOT / "build").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, *arguments[1:]], cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True
    )
    tables = tuple(find_tables(done.stdout))
    # 1 with tables is a verdict: a promise is broken, and the page shows it.
    if done.returncode not in {0, 1} or not tables:
        raise ResultsError(f"{name}: {command}: exit code {done.returncode}, {len(tables)} tables")
    return Results(command, commit, time.strftime("%Y-%m-%d", time.gmtime()), tables)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _is_measured(name: str) -> bool:
    """Whether the command was measured, and no code changed since that may change its figures."""
    try:
        found = read_results(name)
    except ResultsError:
        return False
    is_measured = found.how == MEASURED and found.command == QUESTIONS[name]
    return is_measured and _is_unchanged_since(found.commit)


def _is_unchanged_since(commit: str) -> bool:
    words = ["git", "diff", "--quiet", commit, "HEAD", "--", *DECIDING]
    # 1: something changed. More: the commit isn't in this repository.
    return subprocess.run(words, cwd=ROOT, check=False, capture_output=True).returncode == 0


def _measure_all(names: Iterable[str], commit: str) -> int:
    failed = 0
    for name in names:
        if _is_measured(name):
            say(f"{name}: nothing changed since it was measured")
            continue
        say(f"{name}: {QUESTIONS[name]}")
        try:
            write_results(name, measure(name, commit))
        except ResultsError as error:
            say(str(error))
            failed = 1
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what isn't measured at this commit; 1 if a command failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of questions; default: all")
    parser.add_argument("--list", action="store_true", help="print them with their commands")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in QUESTIONS]
    if unknown:
        parser.error(f"{unknown[0]}: unknown question; there are {', '.join(QUESTIONS)}")
    if options.list:
        for name, command in QUESTIONS.items():
            print(f"{name}: {command}")
        return 0
    # Figures belong to a commit: with changes that aren't committed, they would belong to none.
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!lab/results", ":!*.md")
    if changed:
        parser.error(f"commit first, since figures name their commit:\n{changed}")
    return _measure_all(options.names or QUESTIONS, _git("rev-parse", "--short=8", "HEAD"))


if __name__ == "__main__":
    raise SystemExit(main())
