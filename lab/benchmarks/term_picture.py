"""Draw a week of a term: users, who waits, placeholders and nodes, in a panel for each arm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from benchmarks import terms as drawn
from benchmarks.drawing import WIDTH, svg, text
from benchmarks.term_figures import DAY_NAMES, IMPORTED, NONE, Waits
from benchmarks.terms import Term
from roost_core.placement.headroom_account import LATE_SECONDS
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.units import DAY_SECONDS, HOUR_SECONDS

PICTURE_WEEK: Final = 3
# The panels' titles, and what of.
PICTURE_ARMS: Final = {
    NONE: ("Without Roost", "no placeholders"),
    IMPORTED: ("With Roost", "as roost import writes it"),
}
LOOK_SECONDS: Final = 60
# So many looks are one step of a line, which shows the greatest.
LOOKS_A_STEP: Final = 10
# Of a panel, in pixels.
PANEL_TOP: Final = 28
PANEL_LEFT: Final = 45
PANEL_WIDTH: Final = 690
PANEL_HEIGHT: Final = 125
# From a title to its plot, and from a plot to its days.
HEAD_HEIGHT: Final = 48
DAYS_BELOW: Final = 28
GAP: Final = 36
# Larger than in other drawings: README is read on phones, too.
TITLE_STYLE: Final = "font-size:18px"
WORDS_STYLE: Final = "font-size:14.5px"
# In light and in dark; the other drawings have no such lines.
WAITING_STYLE: Final = "stroke:#d1495b;stroke-width:3"
SEATS_STYLE: Final = "stroke:#2a9d6f;stroke-width:1.5"
CLASS_STYLE: Final = "stroke:#7d8791"


class Look(NamedTuple):
    """How many there are at a time."""

    users: int
    waiting: int
    placeholders: int
    nodes: int


class Scale(NamedTuple):
    """What both panels have alike."""

    # Users at the panels' top.
    most: int
    # The most people who wait at once.
    waiting: int
    users_a_node: int
    # When classes begin: days since Monday.
    class_days: Sequence[float]

    @property
    def below(self) -> float:
        """Height in which people who wait hang below the axis, in pixels."""
        return PANEL_HEIGHT * self.waiting / self.most


class Played(NamedTuple):
    """A week for the picture."""

    looks: Sequence[Look]
    # Of those who came from Monday to Friday.
    waits: Waits


def draw(term: Term, weeks: Mapping[str, Played]) -> str:
    """The picture: a panel for each arm."""
    steps = {arm: list(_steps(played.looks)) for arm, played in weeks.items()}
    users_a_node = _users_a_node(term)
    most = max(
        _greatest(step, users_a_node) for steps_of_term in steps.values() for step in steps_of_term
    )
    waiting = max(step.waiting for steps_of_term in steps.values() for step in steps_of_term)
    scale = Scale(most, waiting, users_a_node, list(_class_days(term)))
    step_px = HEAD_HEIGHT + PANEL_HEIGHT + scale.below + DAYS_BELOW + GAP
    parts: list[str] = []
    for place, (arm, played) in enumerate(weeks.items()):
        name, what = PICTURE_ARMS[arm]
        hours = sum(look.nodes for look in played.looks) * LOOK_SECONDS / HOUR_SECONDS
        title = f"{name}: {_tell(played.waits)}"
        about = f"{what}; {hours:,.0f} node-hours from Monday to Friday"
        parts += _panel(PANEL_TOP + step_px * place, (title, about), steps[arm], scale)
    bottom = PANEL_TOP + step_px * len(weeks)
    parts += _legend(bottom, users_a_node)
    label = "A week of classes without Roost and with it: users, who waits, and nodes"
    return svg(round(bottom + 18), label, parts)


def _tell(waits: Waits) -> str:
    """Who waits long, in words."""
    late = round(waits.late_percent)
    who = f"{late} of 100 people wait" if late else "fewer than 1 of 100 people wait"
    return f"{who if waits.late_percent else 'nobody waits'} longer than {LATE_SECONDS:.0f} s"


def _steps(looks: Sequence[Look]) -> Iterator[Look]:
    """The greatest of each number in each step, so that no short wait is lost."""
    for first in range(0, len(looks), LOOKS_A_STEP):
        yield Look(*map(max, zip(*looks[first : first + LOOKS_A_STEP], strict=True)))


def _greatest(step: Look, users_a_node: int) -> int:
    return max(step.users, step.waiting, step.placeholders, users_a_node * step.nodes)


def _users_a_node(term: Term) -> int:
    """How many users of the term's smallest image a node takes: no node has more users."""
    assumed = Assumptions()
    memory = min(image.memory_bytes for image in term.images)
    by_cpu = assumed.node_cpu_millicores // drawn.CPU_MILLICORES
    return min(assumed.node_memory_bytes // memory, by_cpu, assumed.node_pods)


def _panel(
    top: float, titles: tuple[str, str], steps: Sequence[Look], scale: Scale
) -> Iterator[str]:
    bottom = top + HEAD_HEIGHT + PANEL_HEIGHT
    days = range(drawn.WORKING_DAYS)

    def x(day: float) -> float:
        return PANEL_LEFT + PANEL_WIDTH * day / len(days)

    def y(count: float) -> float:
        return bottom - PANEL_HEIGHT * count / scale.most

    step_days = LOOKS_A_STEP * LOOK_SECONDS / DAY_SECONDS

    def path(counts: Iterable[float]) -> str:
        return "L".join(f"{x(step_days * n):.1f} {y(count):.1f}" for n, count in enumerate(counts))

    yield text(15, top, titles[0], "bold", TITLE_STYLE)
    yield text(15, top + 20, titles[1], "small", WORDS_STYLE)
    yield text(15, top + HEAD_HEIGHT - 8, "people", "small", WORDS_STYLE)
    for count in range(0, scale.most, 100):
        yield f'<path class="grid" d="M{PANEL_LEFT} {y(count):.1f}h{PANEL_WIDTH}"/>'
        # Its end stands at the axis.
        at_end = f"{WORDS_STYLE};text-anchor:end"
        yield text(PANEL_LEFT - 6, y(count) + 5, str(count), "small", at_end)
    base = bottom + scale.below
    for day in days:
        yield f'<path class="grid" d="M{x(day):.1f} {base:.1f}V{bottom - PANEL_HEIGHT}"/>'
        yield text(x(day + 0.5) - 14, base + DAYS_BELOW, DAY_NAMES[day], "small", WORDS_STYLE)
    room = path(scale.users_a_node * step.nodes for step in steps)
    yield f'<path class="node" d="M{PANEL_LEFT} {bottom}L{room}V{bottom}Z"/>'
    for begin in scale.class_days:
        yield f'<path class="line" style="{CLASS_STYLE}" d="M{x(begin):.1f} {base + 4:.1f}v7"/>'
    seats = path(step.placeholders for step in steps)
    yield f'<path class="line" style="{SEATS_STYLE}" d="M{seats}"/>'
    yield f'<path class="line users" d="M{path(step.users for step in steps)}"/>'
    # People who wait hang below the axis: no other line hides them.
    waiting = [(n, step.waiting) for n, step in enumerate(steps) if step.waiting]
    bars = " ".join(
        f"M{x(step_days * n):.1f} {bottom}V{2 * bottom - y(count):.1f}" for n, count in waiting
    )
    if bars:
        yield f'<path class="line" style="{WAITING_STYLE}" d="{bars}"/>'
    most = max(waiting, key=lambda each: each[1], default=(0, 0))
    if most[1] == scale.waiting > 0:
        yield text(
            x(step_days * most[0]) + 6, base - 2, f"{most[1]} wait at once", style=WORDS_STYLE
        )


def _class_days(term: Term) -> Iterator[float]:
    """When classes begin in the picture's week: days since its Monday."""
    for number, course in enumerate(term.classes):
        if _takes_place(term, number):
            minutes = course.minute + course.late_minutes.get(PICTURE_WEEK, 0)
            yield course.weekday + (course.hour + minutes / 60) / 24


def _takes_place(term: Term, number: int) -> bool:
    each = term.classes[number]
    day = (PICTURE_WEEK - 1) * drawn.DAYS_A_WEEK + each.weekday
    return day != term.holiday and PICTURE_WEEK not in each.weeks_left_out


def _legend(y: float, users_a_node: int) -> Iterator[str]:
    marks = (
        (f'<path class="line users" d="M0 {y}h22"/>', "users"),
        (f'<path class="line" style="{WAITING_STYLE}" d="M0 {y}h22"/>', "users who wait"),
        (f'<path class="line" style="{SEATS_STYLE}" d="M0 {y}h22"/>', "placeholders"),
        (
            f'<rect class="node" y="{y - 6}" width="22" height="12"/>',
            f"room: {users_a_node} a node",
        ),
        (f'<path class="line" style="{CLASS_STYLE}" d="M18 {y - 4}v8"/>', "a class begins"),
    )
    # Equal gaps, by a letter's usual width.
    widths = [28 + 7.4 * len(words) for _, words in marks]
    gap = (WIDTH - 30 - sum(widths)) / (len(marks) - 1)
    x = 15.0
    for (mark, words), width in zip(marks, widths, strict=True):
        yield f'<g transform="translate({x:.1f} 0)">{mark}</g>'
        yield text(x + 28, y + 5, words, style=WORDS_STYLE)
        x += width + gap
