"""Draw a moment of the cluster in a terminal: each node as a bar of users, placeholders and builds,
and what waits.

`show` draws it with Rich; `watch` refreshes it until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from roost_lab.pages.dates import as_date
from roost_lab.pages.names import LEAST_LENGTH, shorten
from roost_lab.pages.phrases import plural, show_plain, show_span
from roost_lab.recorder.recording.scheduler_model import BUILD, PLACEHOLDER, USER
from roost_lab.recorder.store.phases import CONTAINERS
from roost_lab.report.start_phases import PHASE_NAMES
from roost_lab.units import US
from roost_lab.view.live import LiveCluster
from roost_lab.view.moment import (
    OTHER,
    ClusterMoment,
    NodeBox,
    NodeState,
    PodBox,
    PodChange,
    PodState,
    tell_moment,
)

# In the order of drawing; the letters distinguish classes without colour.
MARKS: Final = (
    (USER, "U", "green"),
    # A pod of any class; shown only where a hub's log tells.
    (PodState.LOADING, "u", "cyan"),
    (BUILD, "B", "magenta"),
    (PLACEHOLDER, "p", "yellow"),
    (OTHER, ".", "bright_black"),
)
_KINDS: Final = frozenset({USER, BUILD, PLACEHOLDER})
# Most changes and waiting pods that are shown; the fewest on a low terminal.
MAX_ITEMS: Final = 8
MIN_ITEMS: Final = 2
COLUMNS: Final = 100
MIN_BAR: Final = 4
GAP: Final = "  "
NODE: Final = "node"
PODS_HEADING: Final = "pods"
STATE_WIDTH: Final = max(len(state) for state in NodeState)
REFRESH_SECONDS: Final = 1.0
_WAITS: Final = {
    PodState.PULLING: "pulls",
    PodState.FAILING: "can't pull",
    PodState.STARTING: "its containers start",
    PodState.LOADING: "its server loads",
}


def in_order(nodes: Sequence[NodeBox]) -> list[NodeBox]:
    """The nodes in trouble first: those that aren't ready, are cordoned, leave or fail to pull;
    then by name.
    """

    def place(node: NodeBox) -> tuple[bool, str]:
        is_failing = any(pod.state is PodState.FAILING for pod in node.pods)
        return node.state is NodeState.READY and not is_failing, node.name

    return sorted(nodes, key=place)


def counts_of(node: NodeBox) -> Counter[str]:
    """Pods by kind, those of other classes and of none together, and apart those that load."""
    counts: Counter[str] = Counter()
    for pod in node.pods:
        if pod.state is PodState.LOADING:
            counts[PodState.LOADING] += 1
        else:
            counts[pod.kind if pod.kind in _KINDS else OTHER] += 1
    counts[OTHER] += node.others
    # Without zeros.
    return +counts


def fullness(node: NodeBox) -> float:
    """The larger requested share of CPU and memory; 0 where the node's size isn't known."""
    amounts = (node.cpu_millicores, node.memory_bytes)
    return max((used / room for used, room in amounts if room), default=0.0)


def show(moment: ClusterMoment, columns: int = COLUMNS, lines: int | None = None) -> RenderableType:
    """The moment for a terminal of that size."""
    most = min(MAX_ITEMS, max(MIN_ITEMS, lines // 6)) if lines is not None else MAX_ITEMS
    head = [_line(tell_moment(moment), "bold"), _legend(moment), _pending(moment)]
    words = [*_waiting(moment, columns, most), *_changes(moment.changes[:most], columns)]
    # Without headings, and the line on what isn't shown.
    room = len(moment.nodes)
    if lines is not None:
        room = max(MIN_ITEMS, lines - 2 - len(head) - len(words))
    nodes = _nodes(in_order(moment.nodes)[:room], columns)
    hidden = len(moment.nodes) - room
    if hidden > 0:
        nodes.append(_line(f"and {hidden} more nodes"))
    return Group(*head, *nodes, *words)


def _pending(moment: ClusterMoment) -> Text:
    waiting = [
        f"{plural(count, kind if kind != OTHER else 'other pod')}, oldest"
        f" {_show_age(moment.at_us - oldest_us)}"
        for kind, (count, oldest_us) in sorted(moment.waits.items())
    ]
    return _line(f"pending: {'; '.join(waiting) or 'none'}", "red" if USER in moment.waits else "")


def _nodes(shown: Sequence[NodeBox], columns: int) -> list[Text]:
    if not shown:
        return [_line("no nodes", "red")]
    names = _short([node.name for node in shown], columns // 3)
    name_width = max(len(name) for name in (NODE, *names))
    numbers_width = max(len(_numbers(counts_of(node))) for node in shown)
    # State, full and images, each with the gap before it.
    others_width = 6 + STATE_WIDTH + 2 + 8
    room = columns - name_width - len(GAP) - numbers_width - 1 - others_width
    bar_width = max(MIN_BAR, room)
    # No wider than the longest bar needs.
    pods_width = max(len(PODS_HEADING), *(len(bar(counts_of(node), bar_width)) for node in shown))
    heading = (
        f"{NODE.ljust(name_width)}{GAP}{'state':{STATE_WIDTH}}{GAP}{PODS_HEADING.ljust(pods_width)}"
    )
    texts = [_line(f"{heading}{GAP}full{GAP}images", "bold")]
    for node, name in zip(shown, names, strict=True):
        style = "" if node.state is NodeState.READY else "red"
        text = _line(f"{name.ljust(name_width)}{GAP}{node.state:{STATE_WIDTH}}{GAP}", style)
        # In its own colours.
        pods = bar(counts_of(node), bar_width)
        pods.pad_right(pods_width - len(pods))
        text.append_text(pods)
        images = "-" if node.images is None else node.images
        text.append(f"{GAP}{fullness(node):4.0%}{GAP}{images:>6}", style)
        texts.append(text)
    return texts


def waits_of(moment: ClusterMoment) -> dict[str, tuple[PodBox, str]]:
    """The pods that wait, and for what, by uid: users first, the oldest of each kind first."""
    waits = {pod.uid: (pod, pod.reason or "no scheduler has tried yet") for pod in moment.pending}
    for node in moment.nodes:
        for pod in node.pods:
            if pod.state in _WAITS:
                # Its last part, which tells more than the registry.
                name = (pod.awaits or pod.image).rpartition("/")[2]
                image = f" {name}" if pod.state in (PodState.PULLING, PodState.FAILING) else ""
                waits[pod.uid] = pod, f"{_WAITS[pod.state]}{image} on {node.name}"
    return dict(
        sorted(waits.items(), key=lambda item: (item[1][0].kind != USER, item[1][0].created_us))
    )


def _waiting(moment: ClusterMoment, columns: int, most: int) -> list[Text]:
    waits = [*waits_of(moment).values()]
    if not waits:
        return []
    names = _short([pod.name for pod, _ in waits[:most]], columns // 3)
    ages = [_show_age(moment.at_us - pod.created_us) for pod, _ in waits[:most]]
    rows = _aligned(names, ages, [show_plain(why) for _, why in waits[:most]])
    more = [_line(f"and {len(waits) - most} more")] if len(waits) > most else []
    return [_line("who waits, and why", "bold"), *rows, *more]


def _changes(changes: Sequence[PodChange], columns: int) -> list[Text]:
    if not changes:
        return []
    names = _short([change.name for change in changes], columns // 3)
    nodes = _short([change.to_node or change.from_node for change in changes], columns // 3)
    kinds = [f"{as_date(change.at_us):%H:%M:%S}{GAP}{change.kind}" for change in changes]
    return [_line("the last minute (UTC)", "bold"), *_aligned(names, nodes, kinds)]


def _aligned(*columns: Sequence[str]) -> list[Text]:
    """Rows of these columns, of which only the last is cut: of a message, the beginning matters."""
    widths = [max(len(cell) for cell in column) for column in columns[:-1]]
    widths.append(0)
    rows = zip(*columns, strict=True)
    return [
        _line(GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
        for row in rows
    ]


def _line(text: str, style: str = "") -> Text:
    """One line that never wraps. Not a plain string, which Rich would parse as markup."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _short(names: Sequence[str], width: int) -> list[str]:
    """Names that fit and can be told apart, one for each of the names."""
    plain = [show_plain(name) for name in names]
    short = shorten(plain, max(LEAST_LENGTH, width))
    return [short[name] for name in plain]


def _show_age(span_us: int) -> str:
    return show_span(span_us // US * US) if span_us >= US else "0 s"


def bar(counts: Mapping[str, int], width: int) -> Text:
    """Pods as letters, to scale when they don't fit, with at least one letter for each class; then
    their numbers.
    """
    total = sum(counts.values())
    lengths = {kind: max(1, count * width // total) for kind, count in counts.items() if count}
    if total <= width:
        lengths = {kind: counts[kind] for kind in lengths}
    while sum(lengths.values()) > max(width, len(lengths)):
        lengths[max(lengths, key=lambda kind: lengths[kind])] -= 1
    text = Text()
    for kind, letter, colour in MARKS:
        text.append(letter * lengths.get(kind, 0), style=colour)
    numbers = _numbers(counts)
    text.append(f" {numbers}" if numbers else "-", style="dim")
    return text


def _numbers(counts: Mapping[str, int]) -> str:
    return " ".join(f"{counts[kind]}{letter}" for kind, letter, _ in MARKS if counts.get(kind))


def _legend(moment: ClusterMoment) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for kind, letter, colour in MARKS:
        if kind != PodState.LOADING or moment.wait != PHASE_NAMES[CONTAINERS]:
            text.append(f"{letter} {kind}  ", style=colour)
    text.append(f"starting: {moment.wait}")
    return text


def watch(cluster: LiveCluster, console: Console, *, once: bool) -> str:
    """Draw every second until Ctrl-C, or once.

    Returns why the cluster could not be read, "" when it could.
    """
    stop = threading.Event()
    try:
        fault = cluster.start(stop)
        if fault:
            return fault
        if once:
            console.print(show(cluster.moment(), console.width))
            return ""
        with (
            contextlib.suppress(KeyboardInterrupt),
            Live(console=console, screen=True, auto_refresh=False) as live,
        ):
            while True:
                live.update(show(cluster.moment(), console.width, console.height), refresh=True)
                time.sleep(REFRESH_SECONDS)
    finally:
        stop.set()
    return ""
