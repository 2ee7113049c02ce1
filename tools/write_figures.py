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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import felt_day, flagship, shared_pool, small_binder
from benchmarks.ablation import AGAINST_HUB, LEARNING, OPT_IN
from benchmarks.learned_headroom import LEARNED
from benchmarks.results import FOLDER, QUESTIONS, FigureTable, Results, read_results
from benchmarks.term_figures import FIXED, IMPORTED, NONE, ORACLE
from benchmarks.term_playing import BOOKED, FIXED_PLACEHOLDERS, KNOWN
from roost_lab.simulator.engine.bounds import BOUNDS
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import list_assumptions
from roost_lab.simulator.setup.shipped_policies import describe, policy_files
from tools.generated_file import write_or_check
from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

WRITER: Final = "python -m tools.write_figures"
_PLACE: Final = re.compile(
    rf"<!-- (?P<name>[a-z-]+): written by {re.escape(WRITER)} -->\n.*?<!-- end of (?P=name) -->\n",
    re.DOTALL,
)
_BEGIN: Final = re.compile(rf"<!-- (?P<name>[a-z-]+): written by {re.escape(WRITER)} -->")
# Terms by the autoscaler that they were played with -> their results. These stand in several
# blocks only.
TERMS: Final = {Autoscaler.CLUSTER_AUTOSCALER: "term", Autoscaler.KARPENTER: "term-karpenter"}
# Terms of a university of ten times their size.
LARGE_TERMS: Final = "term-large"
# Terms that no part of Roost was made with.
DRAWN_TERMS: Final = "term-drawn"
# What a node-hour costs on pages that tell money.
NODE_HOUR: Final = 0.40
GPU_NODE_HOUR: Final = 3.00
# Of fewer terms, the worst says no more than the median.
FEWEST_TERMS: Final = 5
# How pages call the arms of `benchmarks.term`.
ARMS: Final = {NONE: "none", FIXED: "always 25", IMPORTED: "learned", ORACLE: "known to the second"}
# Which table of the results of `benchmarks.term` is of what.
FIRST, LATER, AGAINST, TOLD = 0, 1, 2, 3


def blocks() -> Mapping[str, Callable[[], str]]:
    """What stands in the place of each name: what a function makes, or a question's tables."""
    as_measured = {
        name: partial(_as_measured, name)
        for name in sorted(file.stem for file in FOLDER.glob("*.json"))
        if name not in (*TERMS.values(), LARGE_TERMS, DRAWN_TERMS)
    }
    return as_measured | {
        "gains": gains,
        "gains-sources": gains_sources,
        "costs": costs,
        "learned-later": learned_later,
        "learned-karpenter": partial(learned_later, TERMS[Autoscaler.KARPENTER]),
        "learned-large": partial(learned_later, LARGE_TERMS),
        "learned-drawn": partial(learned_later, DRAWN_TERMS),
        "told-cost": told_cost,
        "gpu-course": gpu_course,
        "timetable-by-chance": timetable_by_chance,
        "known-before": first_week,
        "exam": exam,
        "builds": builds,
        "ablation": ablation,
        "any-cloud": partial(_without, "any-cloud", "wait, p99"),
        "shared-pool": partial(_without, "shared-pool", "wait p99"),
        "never-worse": never_worse,
        "small-binder": small_binder_waits,
        "disks": thresholds,
        "term-worlds": partial(_without, "term-worlds", "p95"),
        "felt-day": partial(_without, "felt-day", "wait, p50", "wait, p99"),
        "disks-and-nodes": partial(ranges, "disks-and-nodes"),
        "flagship": partial(_without, "flagship", "wait, p50", "given up"),
        "flagship-parts": flagship_parts,
        "flagship-published": flagship_published,
        "policies": policies,
        "bounds": bounds,
        "assumptions": assumptions,
    }


# A part of Roost, or all of it, is told of hubs where a figure changes by so many percent or more.
TOLD_CHANGE: Final = 5.0
# In percent: from here on, a change is told as "x3".
MANY_TIMES: Final = 200.0
# Sizes of disks, in GB, of which thresholds are told.
TOLD_DISKS: Final = ("200", "1000")
# Assumptions in which hubs differ most. `assumptions.py` tells of all.
TOLD_ASSUMPTIONS: Final = (
    *("kubernetes_minor", "sessions", "pulls", "concurrent_spawn_limit"),
    *("user_cpu_millicores", "user_memory_bytes", "node_cpu_millicores", "node_memory_bytes"),
    *("node_disk_bytes", "min_nodes", "max_nodes", "autoscaler", "boot_median_seconds"),
    *("image_median_bytes", "answer_seconds"),
)


# Blocks of one question


def _as_measured(name: str) -> str:
    """The tables as the command printed them, with their source."""
    results = read_results(name)
    return "\n\n".join([*(table.markdown() for table in results.tables), _source(results)])


def _without(name: str, *words: str) -> str:
    """The first table without columns whose heading begins with any of these words, with its
    source.
    """
    results = read_results(name)
    table = results.tables[0]
    kept = [at for at, heading in enumerate(table.headings) if not heading.startswith(words)]
    rows = [[row[at] for at in kept] for row in table.rows]
    return f"{_markdown([table.headings[at] for at in kept], rows)}\n\n{_source(results)}"


def _source(results: Results) -> str:
    """What measures a table again, and when it was measured."""
    names = {command: name for name, command in QUESTIONS.items()}
    name = names.get(results.command)
    command = f"python -m benchmarks.results {name}" if name else results.command
    return f"`{command}`, {results.how} {results.commit}, {results.date}."


def learned_later(name: str = TERMS[Autoscaler.CLUSTER_AUTOSCALER]) -> str:
    """What learning did from the second week of the terms on. name: of results."""
    term = read_results(name)
    rows = [
        [ARMS[row["placeholders"]], *_later_cells(row)] for row in _in_order(term.tables[LATER])
    ]
    head = ["placeholders"]
    head += ["later than 30 s, % of people", "worst term"]
    head += ["p95, s", "most nodes"]
    head += ["node-hours", "against none, %", "worst term"]
    return f"{_markdown(head, rows)}\n\n{_source(term)}"


def told_cost() -> str:
    """What learning cost each of the drawn terms, as controllers tell it, and in truth."""
    term = read_results(DRAWN_TERMS)
    table = term.tables[TOLD]
    # "true" and "wrong by, %" also stand before, of the hours saved.
    first = table.headings.index("node-hours, told")
    seed = table.headings.index("seed")
    rows = [[row[seed], *row[first:]] for row in table.rows]
    return f"{_markdown(['seed', 'told', 'true', 'wrong by, %'], rows)}\n\n{_source(term)}"


def _later_cells(row: Mapping[str, str]) -> list[str]:
    is_none = row["placeholders"] == NONE
    return [
        f"{float(row['late, %']):.1f}",
        f"{float(_first(row['worst late'])):.1f}",
        row["p95, s"],
        row["most nodes"],
        row["node-hours"],
        "" if is_none else row["against none, %"],
        "" if is_none else _first(row["worst against none"]),
    ]


def _in_order(table: FigureTable) -> list[dict[str, str]]:
    """Rows of the terms by heading, arms as `ARMS` has them."""
    return sorted(_by_heading(table), key=lambda row: list(ARMS).index(row["placeholders"]))


def _by_heading(table: FigureTable) -> list[dict[str, str]]:
    return [dict(zip(table.headings, row, strict=True)) for row in table.rows]


def first_week() -> str:
    """A term's first week: with nothing known, booked, and with two weeks known."""
    results = read_results("known-before")
    names = {
        NONE: ARMS[NONE],
        IMPORTED: "learned, nothing known",
        BOOKED: "the timetable is booked",
        KNOWN: "two earlier weeks are known",
    }
    rows = []
    for row in _by_heading(results.tables[0]):
        is_none = row["placeholders"] == NONE
        rows.append(
            [
                names[row["placeholders"]],
                f"{float(row['late, %']):.1f}",
                f"{float(_first(row['worst late'])):.1f}",
                "" if is_none else row["node-hours against none, %"],
                "" if is_none else _first(row["worst against none"]),
            ]
        )
    head = ["placeholders", "later than 30 s, % of people", "worst term"]
    head += ["node-hours against none, %", "worst term"]
    return f"{_markdown(head, rows)}\n\n{_source(results)}"


def exam() -> str:
    """An exam that comes once, booked and not."""
    results = read_results("exam")
    columns = {
        "exam": "the exam",
        "over 30 s": "people later than 30 s, of 320",
        "no server": "people without a server",
        "p95, s": "p95 of the wait, s",
        "most nodes": "most nodes that there may be",
    }
    rows = [[row[column] for column in columns] for row in _by_heading(results.tables[0])]
    return f"{_markdown(list(columns.values()), rows)}\n\n{_source(results)}"


def gpu_course() -> str:
    """The people of a weekly course with GPUs."""
    names = {NONE: ARMS[NONE], LEARNED: "learned alone", ORACLE: ARMS[ORACLE]}
    head = ["mean wait, s", "p95, s"]
    return _learned_headroom("gpu-course", names, ["mean, s", "p95, s"], head)


def timetable_by_chance() -> str:
    """The people of classes that come by chance."""
    names = {**ARMS, IMPORTED: "25 as imported", LEARNED: "learned alone"}
    head = ["later than 30 s, % of people", "p95, s"]
    return _learned_headroom("timetable-by-chance", names, ["over 30 s, %", "p95, s"], head)


def _learned_headroom(
    name: str, names: Mapping[str, str], columns: Sequence[str], head: Sequence[str]
) -> str:
    """A table of one hub by `benchmarks.learned_headroom`.

    names: of each placeholders' word what the page says. columns, head: the benchmark's headings,
    and the page's for them.
    """
    results = read_results(name)
    rows = []
    for row in _by_heading(results.tables[0]):
        if row["placeholders"] in names:
            more = "" if row["placeholders"] == NONE else row["against none"]
            values = [row[column] for column in columns]
            rows.append([names[row["placeholders"]], *values, row["node-hours"], more])
    head = ["placeholders", *head, "node-hours", "against none"]
    return f"{_markdown(head, rows)}\n\n{_source(results)}"


def builds() -> str:
    """How long builds take by where they go, with how many found a warm cache."""
    results = read_results("builds")
    table = results.tables[0]
    names = {
        "a build's node": "a build's node",
        "with a warm cache": "builds with a warm cache",
        "mean": "mean build",
    }
    rows = [[table.cell(head, row[0]) for head in names] for row in table.rows]
    return f"{_markdown(list(names.values()), rows)}\n\n{_source(results)}"


def thresholds() -> str:
    """What kubelets' thresholds for deleting images cost, on disks of two sizes."""
    results = read_results("disks")
    table = results.tables[0]
    columns = ["disk, GB", "high, low and greatest age"]
    columns += ["cold starts: without Roost, with it", "p95 of waits, s"]
    rows = [[row[column] for column in columns] for row in _by_heading(table)]
    told = [row for row in rows if row[0] in TOLD_DISKS]
    return f"{_markdown(columns, told)}\n\n{_source(results)}"


def flagship_parts() -> str:
    """How much of the wait no placement can shorten, without Roost and with it."""
    table = read_results("flagship").tables[1]
    without, with_roost = (
        table.cell(policy, "share that placement can't touch") for policy in flagship.POLICIES
    )
    return (
        "Most of what people wait is the start of the server itself, which no node shortens:"
        f" {with_roost} of the mean wait with Roost, and {without} without it."
    )


def never_worse() -> str:
    """Hubs without Roost and with it, where a figure changes by TOLD_CHANGE or more."""
    results = read_results("never-worse")
    table = results.tables[0]
    kept = [at for at, heading in enumerate(table.headings) if not heading.startswith("p99")]
    told: list[list[str]] = []
    hub = ""
    for row in table.rows:
        # A hub stands in its first row only.
        hub = row[0] or hub
        cells = [row[at] for at in kept[2:]]
        if any(_change_within(cell) >= TOLD_CHANGE for cell in cells):
            told.append([hub, row[1], *cells])
    head = [table.headings[at] for at in kept]
    left_out = len(table.rows) - len(told)
    return (
        f"In {left_out} of {len(table.rows)} rows, no figure changes by {TOLD_CHANGE:.0f} %. The"
        f" others:\n\n{_markdown(head, _without_repeats(told))}\n\n{_source(results)}"
    )


def _change_within(cell: str) -> float:
    """By how many percent the second figure of "43 → 42" differs from the first."""
    before, after = (float(figure) for figure in cell.split(" → "))
    return abs(after / before - 1) * 100


def small_binder_waits() -> str:
    """A small BinderHub's ten days, with Cluster Autoscaler."""
    results = read_results("small-binder")
    columns = ["placeholders", "policy", "cold starts", "wait, p95, s", "node-hours"]
    rows = [
        [row[column] for column in columns]
        for row in _by_heading(results.tables[0])
        if row["autoscaler"] == Autoscaler.CLUSTER_AUTOSCALER.value
    ]
    return f"{_markdown(columns, rows)}\n\n{_source(results)}"


def flagship_published() -> str:
    """The waits that were published, beside those of the replay."""
    results = read_results("flagship")
    rows = [[row[0].removesuffix(" at most"), *row[1:]] for row in results.tables[2].rows]
    head = ["so many of 100 launches", "took at most, as published, s"]
    head += ["replayed, days 2, 4, 6, 8, 10 (fitted), s", "replayed, days 3, 5, 7, 9 (judged), s"]
    head += ["judged against published"]
    return f"{_markdown(head, rows)}\n\n{_source(results)}"


def ranges(name: str) -> str:
    """A table whose cells have a figure for each replay: the least and the greatest of them."""
    results = read_results(name)
    table = results.tables[0]
    rows = [[row[0], *(_range_of(cell) for cell in row[1:])] for row in table.rows]
    return f"{_markdown(table.headings, rows)}\n\n{_source(results)}"


def ablation() -> str:
    """What Roost changes, what goes with each of its parts, and what optional parts add.

    Of a part only hubs are told where one figure changes by TOLD_CHANGE or more. The command prints
    rows of hub, placeholders, part, and changes as a median with its least and greatest.
    """
    results = read_results("ablation")
    table = results.tables[0]
    told = [table.headings.index(name) for name in ("cold starts", "wait p95", "node-hours")]
    against_hub: list[list[str]] = []
    without: list[list[str]] = []
    added: list[list[str]] = []
    hub = ""
    for row in table.rows:
        hub = row[0] or hub
        part = row[2]
        percents = [float(row[column].partition(" %")[0]) for column in told]
        changes = [_as_change(percent) for percent in percents]
        if part == AGAINST_HUB:
            against_hub.append([hub, *changes])
        elif part == LEARNING:
            # Learning is told from whole terms.
            continue
        elif any(abs(percent) >= TOLD_CHANGE for percent in percents):
            rows = added if part in OPT_IN else without
            rows.append([part, hub, *changes])
    figures = ["cold starts, %", "wait p95, %", "node-hours, %"]
    parts = [
        "Roost's defaults, against zero-to-jupyterhub's:",
        _markdown(["hub", *figures], against_hub),
        "Roost without one part, against Roost's defaults:",
        _markdown(["part that is away", "hub", *figures], _by_part(without)),
    ]
    if added:
        parts += [
            "Roost with a part that is off by default, against Roost's defaults:",
            _markdown(["part that is added", "hub", *figures], _by_part(added)),
        ]
    return "\n\n".join([*parts, _source(results)])


def _as_change(percent: float) -> str:
    """A change in percent as "+20". From three times as many on: "x6"."""
    if percent >= MANY_TIMES:
        return f"x{1 + percent / 100:.0f}"
    rounded = round(percent)
    return f"{rounded:+}" if rounded else "0"


def _by_part(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows of each part together, the part named in its first row only."""
    parts = list(dict.fromkeys(row[0] for row in rows))
    return _without_repeats(sorted(rows, key=lambda row: parts.index(row[0])))


def _without_repeats(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows with their first cell only where it differs from the row before."""
    before = ""
    shown = []
    for row in rows:
        shown.append(["" if row[0] == before else row[0], *row[1:]])
        before = row[0]
    return shown


def _range_of(cell: str) -> str:
    """The least and the greatest of figures that stand in one cell, as "-47 to -41 %"."""
    if not cell:
        return ""
    figures = cell.removesuffix(" %").split(", ")
    unit = " %" if cell.endswith(" %") else ""
    least = min(figures, key=float)
    greatest = max(figures, key=float)
    if float(least) == float(greatest):
        return f"{least}{unit}"
    return f"{least} to {greatest}{unit}"


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
    """lab/docs/simulator.md: what is assumed where nobody says otherwise.

    Raises KeyError: TOLD_ASSUMPTIONS has a name that is no assumption.
    """
    all_rows = {row.name: row for row in list_assumptions(Assumptions())}
    assumptions_shown = (all_rows[name] for name in TOLD_ASSUMPTIONS)
    rows = ([f"`{row.name}`", row.value, row.about] for row in assumptions_shown)
    return _markdown(["assumption", "as usual", "what it is"], rows)


# Blocks of several questions


def gains() -> str:
    """README's tables: what each kind of hub gains. Their rows are numbered through."""
    term = _Term()
    karpenter = _Term(Autoscaler.KARPENTER)
    large = _Term(results=LARGE_TERMS)
    classes = [
        ["no placeholders", *term.gains()],
        ["no placeholders, ten times as many classes", *large.gains()],
        ["25 placeholders at all times", *term.gains(FIXED)],
        ["no placeholders, with Karpenter (`WhenEmptyOrUnderutilized`)", *karpenter.gains()],
    ]
    course = _Course()
    pools = "docs/placement.md#nodes-that-hubs-share"
    others = [
        ["a BinderHub, 13,000 starts a day, pulls of 6 MB/s", *_public_binder().gains(10)],
        ["a BinderHub, 13,000 starts a day, pulls of 25 MB/s", *_felt_day().gains(1)],
        ["a BinderHub, 600 starts a day, pulls of 25 MB/s", *_small_binder().gains(10)],
        [
            f"row 6's BinderHub as four hubs that share nodes, with [`sharedPools`]({pools})",
            *_shared_pool().gains(1),
        ],
        [
            "GPUs, a course once a week, no placeholders yet",
            _mean_nodes(course.hours, 28),
            f"{_whole(course.mean(NONE))} s (the course's mean)",
            f"{_whole(course.mean(LEARNED))} s without a booking",
            f"{course.change} of GPU nodes",
            course.money,
        ],
        ["one node; or few images and no classes", "", "", "no gain", "up to +1 %", ""],
    ]
    head_of_classes = ["row", "hub with classes, today", "nodes, mean", "people who wait over 30 s"]
    head_of_classes += [
        "with Roost",
        "first week after the install",
        "node-hours",
        "money in 4 weeks",
    ]
    head_of_others = ["row", "other hub, or node pool", "nodes, mean", "95 of 100 wait at most"]
    head_of_others += ["with Roost", "node-hours", "money in 4 weeks"]
    first = read_results("known-before").tables[0]
    booked = (Autoscaler.CLUSTER_AUTOSCALER.value, BOOKED)
    late = first.number("late, %", *booked)
    more_hours = first.number("node-hours against none, %", *booked)
    booked_told = (
        f"With a [booked timetable](docs/events.md#a-terms-timetable), {late:.1f} % wait in row"
        f" 1's first week. That week costs {more_hours:.1f} % more node-hours."
    )
    first_of_others = len(classes) + 1
    return "\n\n".join(
        [
            _markdown(head_of_classes, _numbered(classes, 1)),
            booked_told,
            _markdown(head_of_others, _numbered(others, first_of_others)),
        ]
    )


def _numbered(rows: Sequence[Sequence[str]], first: int) -> list[list[str]]:
    return [[str(number), *row] for number, row in enumerate(rows, first)]


def _mean_nodes(node_hours: float, days: int) -> str:
    return f"{node_hours / (24 * days):.1f}"


def _money_of_4_weeks(more_node_hours: float, days: int, node_hour: float = NODE_HOUR) -> str:
    """What node-hours of a replay of so many days cost in four weeks like these."""
    return as_money(more_node_hours * 28 / days * node_hour)


def gains_sources() -> str:
    """What measured each row of README's gains."""
    sources = (
        (
            "1",
            "weeks 2 to 5 of 20 terms, each with 8 to 16 classes of 20 to 180 people: medians",
            TERMS[Autoscaler.CLUSTER_AUTOSCALER],
            "learned-placeholders",
        ),
        (
            "2",
            "two terms as row 1's, each with ten times as many classes and other people",
            LARGE_TERMS,
            "on-a-large-hub",
        ),
        ("3", "as row 1", TERMS[Autoscaler.CLUSTER_AUTOSCALER], "learned-placeholders"),
        ("4", "as row 1", TERMS[Autoscaler.KARPENTER], "with-karpenter"),
        (
            "5",
            "ten days of mybinder.org in 2019, no builds: 13,000 starts a day, nodes of 66 users",
            "flagship",
            "what-an-install-gives",
        ),
        ("6", "one of its days", "felt-day", "what-an-install-gives"),
        (
            "7",
            "ten days, 600 starts a day, nodes of 26 users",
            "small-binder",
            "ten-days-of-a-small-binder",
        ),
        ("8", "row 6, divided among four hubs", "shared-pool", "several-hubs-on-one-pool"),
        ("9", "four weeks, two replays only", "gpu-course", "learned-placeholders"),
        ("10", "", "ablation", "what-each-part-earns"),
    )
    rows = []
    for place, replayed, name, section in sources:
        measured = read_results(name)
        told = f"[{measured.how} {measured.commit}](#{section})"
        rows.append([place, replayed, told])
    head = ["row", "replayed", "figures"]
    return _markdown(head, rows)


def costs() -> str:
    """docs/costs.md: what learning costs a hub of classes of another size, as a sum to do."""
    term = _Term()
    karpenter = _Term(Autoscaler.KARPENTER)
    large = _Term(results=LARGE_TERMS)
    # Of 30 days, as `prices.monthlyCeiling` counts.
    nodes, month_hours = 12, 720
    by = " \N{MULTIPLICATION SIGN} "
    rows = []
    for words, change in (
        ("median", term.change(NONE)),
        ("worst", term.worst_change(NONE)),
        ("median with Karpenter", karpenter.change(NONE)),
        ("worst with Karpenter", karpenter.worst_change(NONE)),
        ("ten times as many classes", large.change(NONE)),
    ):
        dollars = float(change.removesuffix(" %")) / 100 * nodes * month_hours * NODE_HOUR
        factors = (change.lstrip("+"), f"{nodes}", f"{month_hours}", f"${NODE_HOUR:.2f}")
        rows.append([words, f"{by.join(factors)} = ${dollars:.0f}"])
    head = ["term", by.join(("percent", "nodes", "hours of 30 days", "price"))]
    return (
        f"For a hub with classes, count like this. The example is a hub with {nodes} nodes on"
        " average, day and night. The replayed hubs had"
        f" {_mean_nodes(term.hours(NONE), 28)} nodes, and with ten times as many classes"
        f" {_mean_nodes(large.hours(NONE), 28)}. For larger hubs, this is an estimate.\n\n"
        + _markdown(head, rows)
    )


class _Term:
    """What learning did in terms, from their second week on."""

    def __init__(
        self, autoscaler: Autoscaler = Autoscaler.CLUSTER_AUTOSCALER, results: str = ""
    ) -> None:
        """results: the results' name, if they aren't those of `TERMS`."""
        tables = read_results(results or TERMS[autoscaler]).tables
        self._autoscaler = autoscaler.value
        self._first = tables[FIRST]
        self._later = tables[LATER]
        self._against = tables[AGAINST]

    def late(self, arm: str) -> float:
        """Of 100 people of the median term, those who wait longer than 30 s."""
        return self._later.number("late, %", self._autoscaler, arm)

    def late_at_first(self, arm: str) -> float:
        """The same in the first week."""
        return self._first.number("late, %", self._autoscaler, arm)

    @property
    def worst_late(self) -> float:
        """The same of the worst term, as imported."""
        return self._later.number("worst late", self._autoscaler, IMPORTED)

    def hours(self, arm: str) -> float:
        """Node-hours of the median term."""
        return self._later.number("node-hours", self._autoscaler, arm)

    def more(self, arm: str) -> float:
        """Node-hours more as imported than with this arm, in the median of the terms."""
        return self._against.number("node-hours", self._autoscaler, arm)

    def change(self, arm: str) -> str:
        """The same in percent, with its sign."""
        share = self._against.number("node-hours, %", self._autoscaler, arm)
        return f"{share:+.1f} %" if abs(share) < 10 else f"{share:+.0f} %"

    def gains(self, arm: str = NONE) -> list[str]:
        """README's cells from the nodes to the money, against this arm."""
        seeds = self._later.number("seeds", self._autoscaler, IMPORTED)
        late_worst = hours_worst = ""
        if seeds >= FEWEST_TERMS:
            late_worst = f" (worst of {seeds:.0f} terms: {self.worst_late:.1f} %)"
            hours_worst = f" (worst: {self.worst_change(arm)})"
        # The values keep as many placeholders in the first week as the hub had.
        at_first = "as today"
        if arm == NONE:
            at_first = f"{self.late_at_first(NONE):.0f} → {self.late_at_first(IMPORTED):.0f} %"
        return [
            _mean_nodes(self.hours(arm), 28),
            f"{self.late(arm):.0f} %",
            f"{self.late(IMPORTED):.1f} %{late_worst}",
            at_first,
            f"{self.change(arm)}{hours_worst}",
            self.money(arm),
        ]

    def money(self, arm: str) -> str:
        """What learning costs more than this arm, in the median of the terms."""
        return _money_of_4_weeks(self.more(arm), 28)

    def worst_change(self, arm: str) -> str:
        """The change with Roost in the worst term."""
        return f"{self._against.number('worst, %', self._autoscaler, arm):+.1f} %"


@dataclass(frozen=True, slots=True)
class _Pair:
    """A hub in replays without Roost and with it, in this order, with as many placeholders on both
    sides.
    """

    # The wait's p95, in seconds.
    p95: tuple[float, float]
    node_hours: tuple[float, float]

    @property
    def more(self) -> float:
        """Node-hours more with Roost; below 0: fewer."""
        before, after = self.node_hours
        return after - before

    def money(self, days: int) -> str:
        """The same as money, of a replay of so many days."""
        return _money_of_4_weeks(self.more, days)

    def gains(self, days: int) -> list[str]:
        """README's cells from the nodes to the money, of a replay of so many days."""
        return [
            _mean_nodes(self.node_hours[0], days),
            f"{self.p95[0]:.0f} s",
            f"{self.p95[1]:.0f} s",
            _change(*self.node_hours),
            self.money(days),
        ]


def _both(table: FigureTable, heading: str, before: str, after: str) -> tuple[float, float]:
    """A column's figures in the rows of two arms."""
    return table.number(heading, before), table.number(heading, after)


def _public_binder() -> _Pair:
    """Ten days of mybinder.org, with the policy that really ran and with Roost."""
    table, arms = read_results("flagship").tables[0], flagship.POLICIES
    return _Pair(_both(table, "wait, p95, s", *arms), _both(table, "node-hours", *arms))


def _felt_day() -> _Pair:
    """One of these days with pulls four times as fast, until servers answer."""
    table, arms = read_results("felt-day").tables[0], flagship.POLICIES
    return _Pair(_both(table, felt_day.P95, *arms), _both(table, felt_day.NODE_HOURS, *arms))


def _shared_pool() -> _Pair:
    """Four hubs that share nodes."""
    table, arms = read_results("shared-pool").tables[0], (shared_pool.BEFORE, shared_pool.SHARING)
    return _Pair(_both(table, "wait p95, s", *arms), _both(table, "node-hours", *arms))


def _small_binder() -> _Pair:
    """Ten days of a BinderHub with 600 starts a day, until servers answer."""
    table = read_results("small-binder").tables[0]
    hub = (Autoscaler.CLUSTER_AUTOSCALER.value, str(FIXED_PLACEHOLDERS))

    def both(heading: str) -> tuple[float, float]:
        before, after = (
            table.number(heading, *hub, policy) for policy in small_binder.POLICIES.values()
        )
        return before, after

    return _Pair(both(small_binder.P95), both(small_binder.NODE_HOURS))


class _Course:
    """Four weeks of a hub with a weekly course on GPUs."""

    def __init__(self) -> None:
        self._table = read_results("gpu-course").tables[0]

    def _number(self, heading: str, arm: str) -> float:
        # A hub stands in its first row only.
        hub = self._table.rows[0][0] if arm == NONE else ""
        return self._table.number(heading, hub, arm)

    def mean(self, arm: str) -> float:
        """The mean wait of the course's people, in seconds."""
        return self._number("mean, s", arm)

    @property
    def hours(self) -> float:
        """Node-hours without placeholders."""
        return self._number("node-hours", NONE)

    @property
    def more(self) -> float:
        """Node-hours more with learning."""
        return self.hours * self._number("against none", LEARNED) / 100

    @property
    def change(self) -> str:
        """The same in percent, with its sign."""
        return f"{self._number('against none', LEARNED):+.1f} %"

    @property
    def money(self) -> str:
        """The same as money."""
        return _money_of_4_weeks(self.more, 28, GPU_NODE_HOUR)


def _change(before: float, after: float) -> str:
    """In percent, with its sign; what rounds to nothing has none."""
    share = round(100 * (after / before - 1), 1)
    return f"{share:+.1f} %" if share else "0 %"


def _whole(number: float) -> int:
    """To the nearest whole number, halves up: 94.5 is 95."""
    return math.floor(number + 0.5)


def as_money(amount: float) -> str:
    """Dollars with their sign, whole."""
    whole = round(amount)
    sign = ""
    if whole > 0:
        sign = "+"
    elif whole < 0:
        sign = "-"
    return f"{sign}${abs(whole)}"


# Cells


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    escaped = (tuple(cell.replace("|", "\\|") for cell in row) for row in rows)
    return FigureTable(tuple(headings), tuple(escaped)).markdown()


def _first(cell: str) -> str:
    """A cell without what stands in brackets."""
    return cell.partition(" ")[0]


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
        ROOT / "README.md",
        *sorted(ROOT.glob("docs/**/*.md")),
        *sorted(ROOT.glob("lab/docs/**/*.md")),
    ]


def main(arguments: list[str]) -> int:
    """Write the pages, or check them."""
    made = blocks()
    files = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if _BEGIN.search(text):
            files.append((path, fill(text, str(path.relative_to(ROOT)), made)))
    return write_or_check(files, arguments, WRITER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
