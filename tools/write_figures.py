"""Write into pages the figures of replays, from the files in `lab/results`, and the simulator's
tables that its code knows.

.venv/bin/python -m tools.write_figures [--check]

A page has a place for a block: a line `<!-- NAME: written by python -m tools.write_figures -->`,
and a line `<!-- end of NAME -->`. `BLOCKS` says what stands between them. `make figures` measures
anew and writes the pages.
"""

from __future__ import annotations

import math
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.results import FOLDER, FigureTable, Results, read_results
from roost_lab.simulator.engine.bounds import BOUNDS
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import list_assumptions
from roost_lab.simulator.setup.shipped import describe, policy_files
from tools.generated_file import write_or_check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

TOP: Final = Path(__file__).resolve().parent.parent
WRITER: Final = "python -m tools.write_figures"
_PLACE: Final = re.compile(
    rf"<!-- (?P<name>[a-z-]+): written by {re.escape(WRITER)} -->\n.*?<!-- end of (?P=name) -->\n",
    re.DOTALL,
)
_BEGIN: Final = re.compile(rf"<!-- (?P<name>[a-z-]+): written by {re.escape(WRITER)} -->")
# Its results stand in several blocks only.
SHOWN_IN_PARTS: Final = "term"
# What a node-hour costs on pages that tell money.
NODE_HOUR: Final = 0.40
GPU_NODE_HOUR: Final = 3.00
# How pages call the arms of `benchmarks.term`, and its autoscalers.
ARMS: Final = {
    "none": "none",
    "fixed": "always 25",
    "imported": "learned",
    "oracle": "known to the second",
}
AUTOSCALERS: Final = {"cluster-autoscaler": "Cluster Autoscaler", "karpenter": "Karpenter"}
# Which table of the results of `benchmarks.term` is of what. The first is of the first week.
LATER, AGAINST = 1, 2


def blocks() -> Mapping[str, Callable[[], str]]:
    """What stands in the place of each name: what a function makes, or a question's tables."""
    as_measured = {
        name: partial(_as_measured, name)
        for name in sorted(file.stem for file in FOLDER.glob("*.json"))
        if name != SHOWN_IN_PARTS
    }
    return as_measured | {
        "gains": gains,
        "gains-sources": gains_sources,
        "gains-untouched": gains_untouched,
        "compared-tuned": compared_tuned,
        "costs": costs,
        "costs-culling": costs_culling,
        "learned-later": learned_later,
        "gpu-course": gpu_course,
        "builds": builds,
        "flagship": partial(_table_of, "flagship", 0),
        "flagship-parts": partial(_table_of, "flagship", 1),
        "flagship-published": partial(_table_of, "flagship", 2),
        "policies": policies,
        "bounds": bounds,
        "assumptions": assumptions,
    }


# Blocks of one question


def _as_measured(name: str) -> str:
    """The tables as the command printed them, with their source."""
    results = read_results(name)
    return "\n\n".join([*(table.markdown() for table in results.tables), _source(results)])


def _table_of(name: str, place: int) -> str:
    """One of several tables, with its source."""
    results = read_results(name)
    return f"{results.tables[place].markdown()}\n\n{_source(results)}"


def _source(results: Results) -> str:
    """What measured a table, and when."""
    return f"`{results.command}`, {results.how} {results.commit}, {results.date}."


def learned_later() -> str:
    """What learning did from the second week of the terms on."""
    term = read_results("term")
    rows = [[*_names(row), *_later_cells(row)] for row in _in_order(term.tables[LATER])]
    head = ["autoscaler", "placeholders", "later than 30 s: median term", "worst", "p95: median"]
    head += ["worst", "node-hours: median", "worst"]
    return f"{_markdown(head, rows)}\n\n{_source(term)}"


def _later_cells(row: Mapping[str, str]) -> list[str]:
    is_none = row["placeholders"] == "none"
    return [
        f"{float(row['late, %']):.1f} %",
        _percent(row["worst late"]),
        f"{row['p95, s']} s",
        f"{_first(row['worst p95'])} s",
        row["node-hours"] if is_none else f"{row['against none, %']} %",
        "" if is_none else f"{_first(row['worst against none'])} %",
    ]


def _in_order(table: FigureTable) -> Iterator[dict[str, str]]:
    """Rows of the terms by heading: autoscalers as printed, arms as `ARMS` has them."""
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    for autoscaler in dict.fromkeys(row["autoscaler"] for row in rows):
        of_autoscaler = [row for row in rows if row["autoscaler"] == autoscaler]
        yield from sorted(of_autoscaler, key=lambda row: list(ARMS).index(row["placeholders"]))


def _names(row: Mapping[str, str]) -> list[str]:
    """The first two cells: an autoscaler stands in its first row only."""
    is_first = row["placeholders"] == "none"
    return [AUTOSCALERS[row["autoscaler"]] if is_first else "", ARMS[row["placeholders"]]]


def gpu_course() -> str:
    """The people of a weekly course with GPUs."""
    course = read_results("gpu-course")
    names = {"none": "none", "learned": "learned alone", "oracle": "known to the second"}
    table = course.tables[0]
    rows = []
    for cells in table.rows:
        row = dict(zip(table.headings, cells, strict=True))
        if row["placeholders"] in names:
            hours = row["node-hours"] if row["placeholders"] == "none" else row["against none"]
            rows.append(
                [names[row["placeholders"]], f"{row['mean, s']} s", f"{row['p95, s']} s", hours]
            )
    head = ["placeholders", "mean wait", "p95", "node-hours"]
    return f"{_markdown(head, rows)}\n\n{_source(course)}"


def builds() -> str:
    """How long builds take by where they go, with how many found a warm cache."""
    results = read_results("builds")
    table = results.tables[0]
    heads = ("a build's node", "builds", "with a warm cache", "build, median", "p95", "mean")
    rows = [[table.cell(head, row[0]) for head in heads] for row in table.rows]
    return f"{_markdown(heads, rows)}\n\n{_source(results)}"


# Blocks of what the simulator's code knows


def policies() -> str:
    """lab/docs/simulator.md: the policies that the lab ships."""
    rows = ([f"`{name}`", describe(name)] for name in policy_files())
    return _markdown(["policy", "what it is"], rows)


def bounds() -> str:
    """lab/docs/simulator.md: what bounds say, each with its key where that is another word."""
    rows = (
        [f"`{bound.beside}`" + ("" if bound.key == bound.beside else f" ({bound.key})"), bound.says]
        for bound in BOUNDS
    )
    return _markdown(["figure", "what it says"], rows)


def assumptions() -> str:
    """lab/docs/simulator.md: what is assumed where nobody says otherwise."""
    rows = ([f"`{row.name}`", row.value, row.about] for row in list_assumptions(Assumptions()))
    return _markdown(["assumption", "as usual", "what it is"], rows)


# Blocks of several questions


def gains() -> str:
    """README's table: what each kind of hub gains."""
    term = _Term()
    public = _Binder()
    course = read_results("gpu-course").tables[0]
    pool = read_results("shared-pool").tables[0]
    alone, together = "z2jh, placeholders packed", "Roost, sharedPools"
    hours_before = pool.number("node-hours", alone)
    hours = pool.number("node-hours", together)
    mean = [course.number("mean, s", *_gpu(course, arm)) for arm in ("none", "learned")]
    gpu_hours = course.number("node-hours", *_gpu(course, "none"))
    gpu_more = course.number("against none", *_gpu(course, "learned"))
    worst = term.worst_change("none")
    rows = [
        [
            "classes at set times, no placeholders yet",
            f"{term.late('none'):.0f} of 100 people wait longer than 30 s",
            f"{term.late('imported'):.1f} of 100 ({term.worst_late:.1f} in the worst term)",
            f"{term.told('none')}, {worst} in the worst term",
            as_money(term.more("none") * NODE_HOUR),
        ],
        [
            "the same, with 25 placeholders at all times",
            f"{term.late('fixed'):.0f} of 100 people wait longer than 30 s",
            f"{term.late('imported'):.1f} of 100",
            term.told("fixed"),
            as_money(term.more("fixed") * NODE_HOUR),
        ],
        ["many images, as a public BinderHub", *public.gain(), as_money(public.more * NODE_HOUR)],
        [
            "GPUs, and a course once a week",
            f"people of the course wait {_whole(mean[0])} s on average",
            f"{_whole(mean[1])} s on average",
            _hours_today(gpu_hours, f"{gpu_more:+.1f} %"),
            as_money(gpu_hours * gpu_more / 100 * GPU_NODE_HOUR),
        ],
        [
            "several hubs on the same nodes, many images",
            f"5 of 100 people wait {pool.number('wait p95, s', alone):.0f} s or longer",
            f"5 of 100 wait {pool.number('wait p95, s', together):.0f} s or longer",
            f"{hours_before:,.0f} → {hours:,.0f}",
            as_money((hours - hours_before) * NODE_HOUR),
        ],
        ["few images, no classes", "short", "the same", "up to +1 %", ""],
        ["one node", "", "Roost changes nothing", "the same", ""],
    ]
    return _markdown(["your hub", "wait today", "wait with Roost", "node-hours", "money"], rows)


def gains_untouched() -> str:
    """README's sentence on what placement can't touch."""
    parts = read_results("flagship").tables[1]
    share = parts.cell("roost", "share that placement can't touch").removesuffix(" %")
    return (
        "In row 3, waits end when the server answers. With Roost,"
        f" {share} of 100 seconds of them are start and answer, which no placement shortens."
        " All other waits here end when the server's containers run. Then JupyterLab needs some"
        " seconds to answer, with and without Roost:"
        " [what else makes starts fast](docs/faster-starts.md)."
    )


def gains_sources() -> str:
    """README's table of what measured each row of its gains."""
    results = "lab/docs/simulator-results.md"
    sources = (
        ("1, 2", "term", "learned placeholders", f"{results}#learned-placeholders"),
        ("3", "flagship", "what an install gives", f"{results}#what-an-install-gives"),
        ("4", "gpu-course", "learned placeholders", f"{results}#learned-placeholders"),
        ("5", "shared-pool", "several hubs", f"{results}#several-hubs-on-one-pool"),
        ("6", "ablation", "by part", f"{results}#what-each-part-earns"),
    )
    rows = []
    for place, name, words, link in sources:
        measured = read_results(name)
        rows.append(
            [
                place,
                f"`{measured.command}`",
                f"{measured.how} {measured.commit}",
                f"[{words}]({link})",
            ]
        )
    return _markdown(["row", "command", "figures", "table"], rows)


def compared_tuned() -> str:
    """docs/compared.md: what a hub that is tuned well still lacks."""
    term = _Term()
    return (
        "1. The number of placeholders is the same at 3 a.m. and before the largest"
        " class. In twenty drawn terms, 25 placeholders at all times cost"
        f" {term.fixed_cost:.0f} % more node-hours, and {term.late('fixed'):.0f} % of the starts"
        f" still waited longer than 30 s. Learned numbers cost {term.change('none').lstrip('+')}"
        f" and leave {term.late('imported'):.1f} %"
        " ([table](../lab/docs/simulator-results.md#learned-placeholders)).\n"
        "2. Where images are many, the user scheduler knows nothing of images. In ten days of"
        f" mybinder.org, Roost had {_Binder().fewer_cold:.0f} % fewer cold starts with as many"
        " placeholders ([table](../lab/docs/simulator-results.md#what-an-install-gives))."
    )


def costs() -> str:
    """docs/costs.md: what each kind of hub pays."""
    term = _Term()
    public = _Binder()
    course = read_results("gpu-course").tables[0]
    gpu_hours = course.number("node-hours", *_gpu(course, "none"))
    gpu_more = course.number("against none", *_gpu(course, "learned"))
    rows = [
        [
            "a term's classes, 4 weeks, no placeholders before",
            term.told("none"),
            f"{term.more('none') * NODE_HOUR:+,.0f}",
        ],
        [
            "the same, with 25 placeholders at all times before",
            term.told("fixed"),
            f"{term.more('fixed') * NODE_HOUR:+,.0f}",
        ],
        [
            "many images, as mybinder.org's: 10 days, as many placeholders",
            public.hours,
            f"{public.more * NODE_HOUR:+,.0f}",
        ],
        [
            "GPUs with a weekly course, 4 weeks",
            _hours_today(gpu_hours, f"{gpu_more:+.1f} %"),
            f"{gpu_hours * gpu_more / 100 * GPU_NODE_HOUR:+,.0f}",
        ],
        ["few images, no classes", "up to +1 %", ""],
    ]
    return _markdown(["hub", "node-hours", "money"], rows)


def costs_culling() -> str:
    """docs/costs.md: what ending idle servers earlier saves, without Roost and with it."""
    table = read_results("culling").tables[0]
    saved = sorted(
        round(-table.number(arm, "1800", "600")) for arm in ("without Roost", "with Roost")
    )
    return (
        "What saves more than Roost: ending idle servers after half an hour instead of an hour,"
        f" [{saved[0]} to {saved[1]} % of node-hours]"
        "(../lab/docs/simulator-results.md#idle-servers)."
    )


class _Term:
    """What learning did in a term with Cluster Autoscaler, from its second week on."""

    def __init__(self) -> None:
        tables = read_results("term").tables
        self._later = tables[LATER]
        self._against = tables[AGAINST]

    def late(self, arm: str) -> float:
        """Of 100 people of the median term, those who wait longer than 30 s."""
        return self._later.number("late, %", "cluster-autoscaler", arm)

    @property
    def worst_late(self) -> float:
        """The same of the worst term, as imported."""
        return self._later.number("worst late", "cluster-autoscaler", "imported")

    def hours(self, arm: str) -> float:
        """Node-hours of the median term."""
        return self._later.number("node-hours", "cluster-autoscaler", arm)

    @property
    def fixed_cost(self) -> float:
        """Node-hours that 25 placeholders at all times cost more than none, in percent."""
        return self._later.number("against none, %", "cluster-autoscaler", "fixed")

    def more(self, arm: str) -> float:
        """Node-hours more as imported than with this arm, in the median of the terms."""
        return self._against.number("node-hours", "cluster-autoscaler", arm)

    def change(self, arm: str) -> str:
        """The same in percent, with its sign."""
        share = self._against.number("node-hours, %", "cluster-autoscaler", arm)
        return f"{share:+.1f} %" if abs(share) < 10 else f"{share:+.0f} %"

    def told(self, arm: str) -> str:
        """Node-hours with this arm, and the change with Roost, as pages tell them."""
        return _hours_today(self.hours(arm), self.change(arm))

    def worst_change(self, arm: str) -> str:
        """The same of the worst term."""
        return f"{self._against.number('worst, %', 'cluster-autoscaler', arm):+.1f} %"


class _Binder:
    """Ten days of mybinder.org, with the policy that really ran and with Roost."""

    BEFORE: Final = "z2jh-placeholders-packed"
    AFTER: Final = "roost"

    def __init__(self) -> None:
        self._table = read_results("flagship").tables[0]

    def _both(self, heading: str) -> tuple[float, float]:
        return (self._table.number(heading, self.BEFORE), self._table.number(heading, self.AFTER))

    @property
    def more(self) -> float:
        """Node-hours more with Roost; below 0: fewer."""
        before, after = self._both("node-hours")
        return after - before

    @property
    def hours(self) -> str:
        """Node-hours before and after."""
        before, after = self._both("node-hours")
        return f"{before:,.0f} → {after:,.0f} ({100 * (after / before - 1):+.1f} %)"

    @property
    def fewer_cold(self) -> float:
        """Cold starts that Roost saves, in percent."""
        before, after = self._both("cold starts")
        return 100 * (1 - after / before)

    def gain(self) -> list[str]:
        """README's cells: the wait today and with Roost, and node-hours."""
        half_before, half = self._both("wait, p50, s")
        before, after = self._both("wait, p95, s")
        return [
            f"half wait {half_before:.0f} s, 5 of 100 wait {before:.0f} s or longer",
            (
                f"half wait {half:.0f} s, 5 of 100 wait {after:.0f} s or longer;"
                f" {self.fewer_cold:.0f} % fewer downloads"
            ),
            self.hours,
        ]


def _hours_today(hours: float, change: str) -> str:
    return f"{hours:,.0f} today; {change} with Roost"


def _gpu(course: FigureTable, arm: str) -> tuple[str, str]:
    """The first cells of an arm's row: the hub stands in its first row only."""
    return ("" if arm != "none" else course.rows[0][0], arm)


def _whole(number: float) -> int:
    """To the nearest whole number, halves up: 94.5 is 95."""
    return math.floor(number + 0.5)


def as_money(amount: float) -> str:
    """Dollars with their sign, whole."""
    whole = round(amount)
    return f"{'+' if whole > 0 else '-' if whole < 0 else ''}${abs(whole)}"


# Cells


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    escaped = (tuple(cell.replace("|", "\\|") for cell in row) for row in rows)
    return FigureTable(tuple(headings), tuple(escaped)).markdown()


def _first(cell: str) -> str:
    """A cell without what stands in brackets."""
    return cell.partition(" ")[0]


def _percent(cell: str) -> str:
    return f"{float(_first(cell)):.1f} %"


# Pages


def fill(text: str, page: str, made: Mapping[str, Callable[[], str]]) -> str:
    """The page with its blocks anew. Raises ValueError: a block is unknown, or has no end."""

    def replaced(place: re.Match[str]) -> str:
        name = place["name"]
        if name not in made:
            raise ValueError(f"{page}: {name!r} is no block of {WRITER}")
        begin, end = f"<!-- {name}: written by {WRITER} -->", f"<!-- end of {name} -->"
        return f"{begin}\n\n{made[name]()}\n\n{end}\n"

    begun = [begin["name"] for begin in _BEGIN.finditer(text)]
    ended = [place["name"] for place in _PLACE.finditer(text)]
    if begun != ended:
        raise ValueError(f"{page}: a block begins and doesn't end: {begun} and {ended}")
    return _PLACE.sub(replaced, text)


def pages() -> list[Path]:
    """All pages that may have blocks."""
    return [
        TOP / "README.md",
        *sorted(TOP.glob("docs/**/*.md")),
        *sorted(TOP.glob("lab/docs/**/*.md")),
    ]


def main(arguments: list[str]) -> int:
    """Write the pages, or check them."""
    made = blocks()
    files = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if _BEGIN.search(text):
            files.append((path, fill(text, str(path.relative_to(TOP)), made)))
    return write_or_check(files, arguments, WRITER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
