"""Draw a week of a term: users, who waits, placeholders and nodes, in a panel for each arm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from benchmarks import terms as drawn
from benchmarks.drawing import svg, text
from benchmarks.term_figures import DAY_NAMES, IMPORTED, NONE, Waits
from benchmarks.terms import Term
from roost_core.placement.headroom_account import LATE_SECONDS
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.units import DAY_SECONDS, HOUR_SECONDS

PICTURE_WEEK: Final = 3
# The panels' titles.
PICTURE_ARMS: Final = {NONE: "Without placeholders", IMPORTED: "With Roost, as imported"}
LOOK_SECONDS: Final = 60
# So many looks are one step of a line, which shows the greatest.
LOOKS_A_STEP: Final = 10
# Of a panel, in pixels.
PANEL_LEFT: Final = 45
PANEL_WIDTH: Final = 690
PANEL_HEIGHT: Final = 150
PANEL_STEP: Final = 225
# In light and in dark; the other drawings have no such lines.
WAITING_STYLE: Final = "stroke:#d1495b"
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
    users_a_node: int
    # When classes begin: days since Monday.
    class_days: Sequence[float]


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
    scale = Scale(most, users_a_node, list(_class_days(term)))
    parts: list[str] = []
    for place, (arm, played) in enumerate(weeks.items()):
        late = f"{played.waits.late_percent:.1f} % wait longer than {LATE_SECONDS:.0f} s"
        hours = sum(look.nodes for look in played.looks) * LOOK_SECONDS / HOUR_SECONDS
        title = f"{PICTURE_ARMS[arm]}: {late}, {hours:,.0f} node-hours from Monday to Friday"
        top = 24 + PANEL_STEP * place
        parts += _panel(top, title, steps[arm], scale)
    parts += _legend(24 + PANEL_STEP * len(weeks), users_a_node)
    label = "A week of classes without placeholders and with Roost: users, who waits, and nodes"
    return svg(24 + PANEL_STEP * len(weeks) + 18, label, parts)


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


def _panel(top: float, title: str, steps: Sequence[Look], scale: Scale) -> Iterator[str]:
    bottom = top + 20 + PANEL_HEIGHT
    days = range(drawn.WORKING_DAYS)

    def x(day: float) -> float:
        return PANEL_LEFT + PANEL_WIDTH * day / len(days)

    def y(count: float) -> float:
        return bottom - PANEL_HEIGHT * count / scale.most

    step_days = LOOKS_A_STEP * LOOK_SECONDS / DAY_SECONDS

    def path(counts: Iterable[float]) -> str:
        return "L".join(f"{x(step_days * n):.1f} {y(count):.1f}" for n, count in enumerate(counts))

    yield text(15, top, title, "bold")
    for count in range(0, scale.most + 1, 100 if scale.most > 250 else 50):
        yield f'<path class="grid" d="M{PANEL_LEFT} {y(count):.1f}h{PANEL_WIDTH}"/>'
        yield text(15, y(count) + 4, str(count), "small")
    for day in days:
        yield f'<path class="grid" d="M{x(day):.1f} {bottom}v{-PANEL_HEIGHT}"/>'
        yield text(x(day + 0.5) - 12, bottom + 24, DAY_NAMES[day], "small")
    room = path(scale.users_a_node * step.nodes for step in steps)
    yield f'<path class="node" d="M{PANEL_LEFT} {bottom}L{room}V{bottom}Z"/>'
    for begin in scale.class_days:
        yield f'<path class="line" style="{CLASS_STYLE}" d="M{x(begin):.1f} {bottom + 2}v6"/>'
    seats = path(step.placeholders for step in steps)
    yield f'<path class="line" style="{SEATS_STYLE}" d="M{seats}"/>'
    yield f'<path class="line users" d="M{path(step.users for step in steps)}"/>'
    waiting = ((n, step.waiting) for n, step in enumerate(steps) if step.waiting)
    bars = " ".join(f"M{x(step_days * n):.1f} {bottom}V{y(count):.1f}" for n, count in waiting)
    yield f'<path class="line" style="{WAITING_STYLE}" d="{bars}"/>'


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
    lines = (
        (15, "line users", "", "users"),
        (95, "line", WAITING_STYLE, "waiting users"),
        (225, "line", SEATS_STYLE, "placeholders"),
    )
    for x, kind, style, words in lines:
        yield f'<path class="{kind}" style="{style}" d="M{x} {y}h24"/>'
        yield text(x + 30, y + 4, words)
    yield f'<rect class="node" x="350" y="{y - 6}" width="24" height="12"/>'
    yield text(380, y + 4, f"nodes, {users_a_node} users each")
    yield f'<path class="line" style="{CLASS_STYLE}" d="M560 {y - 3}v6"/>'
    yield text(568, y + 4, "a class begins")
