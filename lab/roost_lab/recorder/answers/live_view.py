"""Show the cluster live: each node as a bar of users, placeholders and builds, its pulls, and the last decisions.

`read_picture` is pure; `show` draws it with Rich; `watch` refreshes it in the terminal until q or Ctrl-C.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.live import Live
from rich.text import Text

from roost_core.kube.watch_cache import WatchCache
from roost_core.objects.images import normalise_reference
from roost_core.objects.requests import CPU, MEMORY, PODS
from roost_core.placement.classes import Classes
from roost_core.placement.settings import USER_CLASS
from roost_lab.pages.dates import US
from roost_lab.pages.names import LEAST_LENGTH, shorten
from roost_lab.pages.phrases import show_plain, show_span
from roost_lab.recorder.answers.live_keys import FULL, TROUBLE, USERS, Keys, View, press
from roost_lab.recorder.recording.reading import EventReading, NodeReading, PodReading, read_event, read_node, read_pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import Console, RenderableType

    from roost_core.kube.client import Client, JSONObject
    from roost_core.objects.pod import ContainerState
    from roost_lab.recorder.recording.settings import RecorderSettings

USER, PLACEHOLDER, BUILD, OTHER = USER_CLASS, "placeholder", "build", "other"
# In the order of drawing; the letters distinguish classes without colour.
MARKS: Final = (
    (USER, "U", "green"),
    (BUILD, "B", "magenta"),
    (PLACEHOLDER, "p", "yellow"),
    (OTHER, ".", "bright_black"),
)
# Most decisions, and most awaited images, that are shown; the fewest on a low terminal.
MAX_ITEMS: Final = 8
MIN_ITEMS: Final = 2
COLUMNS: Final = 100
# Narrower terminals show less of each node.
NARROW_COLUMNS: Final = 60
# Lower ones don't show other namespaces' decisions.
LOW_LINES: Final = 20
MIN_BAR: Final = 4
GAP: Final = "  "
READY: Final = "Ready"
BOUND: Final = "->"
NODE, PODS_HEADING = "node", "pods"
REFRESH_SECONDS: Final = 1.0
# A container that waits for one of these reasons may be pulling its image; with the last two the pull has failed.
PULLING_REASONS: Final = frozenset({"ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff"})
FAILING_REASONS: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})
SYNC_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Pulling:
    """An image that containers on a node are waiting for."""

    # As written in the first of its pods.
    image: str
    pods: int
    # Of the pod that was created first.
    waits_seconds: float
    # The kubelet reported a failure.
    is_failing: bool


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node."""

    name: str
    # Ready, NotReady, cordoned, leaving.
    state: str
    counts: Mapping[str, int]
    # The largest requested share of allocatable CPU, memory and pods, 0 to 1.
    fullness: float
    images: int
    # The longest wait first.
    pulling: Sequence[Pulling]


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster at one time."""

    nodes: Sequence[NodeLine]
    # Class -> pods without a node, and the wait of the oldest one in seconds.
    pending: Mapping[str, tuple[int, float]]
    # Newest first.
    decisions: Sequence[EventReading]
    # Of namespaces without users, builds or placeholders of the hub's, both.
    pending_elsewhere: tuple[int, float] = (0, 0.0)
    decisions_elsewhere: Sequence[EventReading] = ()


def read_picture(
    nodes: Mapping[str, NodeReading],
    pods: Mapping[str, PodReading],
    events: Mapping[str, EventReading],
    classify: Callable[[Mapping[str, str], str], str],
    now: float,
    *,
    namespace: str,
) -> Picture:
    """Combine what is known. now: seconds since 1970; namespace: the hub's."""
    by_node: dict[str, list[tuple[str, PodReading]]] = {}
    waits: dict[tuple[str, str], tuple[int, float]] = {}
    own = {namespace}
    for key, pod in pods.items():
        if pod.state.is_finished:
            continue
        kind = _kind(pod, classify)
        if kind != OTHER:
            own.add(pod.state.namespace)
        if pod.state.node_name:
            by_node.setdefault(pod.state.node_name, []).append((key, pod))
        else:
            place = kind, pod.state.namespace
            count, oldest = waits.get(place, (0, 0.0))
            waits[place] = count + 1, max(oldest, now - pod.state.created)
    lines = [_node_line(node, by_node.get(name, []), classify, now) for name, node in sorted(nodes.items())]
    decided = sorted(events.values(), key=lambda event: -event.last_us)
    return Picture(
        nodes=lines,
        pending={
            kind: _sum(wait for place, wait in waits.items() if place[0] == kind and place[1] in own)
            for kind in {kind for kind, where in waits if where in own}
        },
        decisions=[event for event in decided if event.about[1] in own],
        pending_elsewhere=_sum(wait for (_, where), wait in waits.items() if where not in own),
        decisions_elsewhere=[event for event in decided if event.about[1] not in own],
    )


def _sum(waits: Iterable[tuple[int, float]]) -> tuple[int, float]:
    counts, oldest = zip((0, 0.0), *waits, strict=True)
    return sum(counts), max(oldest)


def _kind(pod: PodReading, classify: Callable[[Mapping[str, str], str], str]) -> str:
    pod_class = classify(pod.state.labels, pod.state.namespace)
    return pod_class if pod_class in (USER, PLACEHOLDER, BUILD) else OTHER


def _node_line(
    node: NodeReading,
    pods: Sequence[tuple[str, PodReading]],
    classify: Callable[[Mapping[str, str], str], str],
    now: float,
) -> NodeLine:
    counts = Counter(_kind(pod, classify) for _, pod in pods)
    seen, allocatable = node.state, node.state.allocatable
    requested: Counter[str] = Counter({PODS: len(pods)})
    for _, pod in pods:
        requested.update(dict(pod.state.spec.requests))
    shares = [requested[name] / allocatable[name] for name in (CPU, MEMORY, PODS) if allocatable.get(name)]
    state = READY if seen.ready else "NotReady"
    if seen.leaving:
        state = "leaving"
    elif seen.unschedulable:
        state = "cordoned"
    return NodeLine(
        name=seen.name,
        state=state,
        counts=counts,
        fullness=max(shares, default=0.0),
        images=len(node.state.images),
        pulling=_pulling(node, pods, now),
    )


def _pulling(node: NodeReading, pods: Sequence[tuple[str, PodReading]], now: float) -> list[Pulling]:
    present = node.state.images
    pulling: dict[str, Pulling] = {}
    for _, pod in pods:
        awaited = {
            normalise_reference(container.image): container for container in _next_containers(pod) if container.image
        }
        for name, container in awaited.items():
            if name in present or container.image in present:
                # It waits for something else: a volume, its network.
                continue
            before = pulling.get(name, Pulling(container.image, 0, 0.0, is_failing=False))
            pulling[name] = Pulling(
                before.image,
                before.pods + 1,
                max(before.waits_seconds, now - pod.state.created),
                before.is_failing or container.waiting_reason in FAILING_REASONS,
            )
    return sorted(pulling.values(), key=lambda pull: (-pull.waits_seconds, pull.image))


def _next_containers(pod: PodReading) -> list[ContainerState]:
    """Containers that the kubelet would start now if it had their image: init containers one by one."""
    containers = pod.state.containers
    init = [container for container in containers if container.init and not (container.terminated or container.running)]
    due = init[:1] or [container for container in containers if not container.init]
    return [container for container in due if container.waiting_reason in PULLING_REASONS and not container.image_id]


def choose(picture: Picture, view: View) -> Picture:
    """What of the picture is asked for, nodes in the order that is asked for."""
    wanted = view.filter.casefold()

    def has(*texts: str) -> bool:
        return any(wanted in text.casefold() for text in texts)

    def place(line: NodeLine) -> tuple[float, str]:
        trouble = line.state == READY and not any(pull.is_failing for pull in line.pulling)
        first = {TROUBLE: float(trouble), FULL: -line.fullness, USERS: -float(line.counts.get(USER, 0))}
        return first.get(view.sort, 0.0), line.name

    return replace(
        picture,
        nodes=sorted((line for line in picture.nodes if has(line.name, line.state)), key=place),
        decisions=[event for event in picture.decisions if has(*event.about[1:3], event.note)],
        decisions_elsewhere=[event for event in picture.decisions_elsewhere if has(*event.about[1:3], event.note)],
    )


def show(
    picture: Picture, columns: int = COLUMNS, lines: int | None = None, view: View | None = None
) -> RenderableType:
    """The picture for a terminal of that size; view: what the keys asked for, None where nobody can press any."""
    return _draw(choose(picture, view or View()), columns, lines, view)[0]


def _draw(chosen: Picture, columns: int, lines: int | None, view: View | None) -> tuple[Group, int]:
    """What is drawn, and how many nodes fit."""
    most = min(MAX_ITEMS, max(MIN_ITEMS, lines // 6)) if lines is not None else MAX_ITEMS
    elsewhere = MIN_ITEMS if lines is None or lines >= LOW_LINES else 0
    head = [_legend(), *_pending(chosen)]
    words = [
        *_pulls(chosen.nodes, columns, most),
        *_decisions("last decisions (UTC)", chosen.decisions[:most], columns),
        *_decisions("in other namespaces", chosen.decisions_elsewhere[:elsewhere], columns),
    ]
    # Without headings, and the line on what isn't shown.
    room = len(chosen.nodes) if lines is None else max(MIN_ITEMS, lines - 2 - len(head) - len(words))
    first = max(0, min(view.first, len(chosen.nodes) - room)) if view is not None else 0
    nodes = _nodes(chosen.nodes[first : first + room], columns)
    hidden = len(chosen.nodes) - room
    if view is not None:
        words.append(_keys_line(view, first, min(room, len(chosen.nodes)), len(chosen.nodes)))
    elif hidden > 0:
        nodes.append(_line(f"and {hidden} more nodes"))
    return Group(*head, *nodes, *words), room


def _pending(picture: Picture) -> list[Text]:
    waiting = [
        f"{count} {kind}{'' if count == 1 else 's'}, oldest {_show_age(age)}"
        for kind, (count, age) in sorted(picture.pending.items())
    ]
    texts = [_line(f"pending: {'; '.join(waiting) or 'none'}", "red" if USER in picture.pending else "")]
    count, age = picture.pending_elsewhere
    if count:
        texts.append(_line(f"in other namespaces: {count} pod{'' if count == 1 else 's'}, oldest {_show_age(age)}"))
    return texts


def _keys_line(view: View, first: int, shown: int, total: int) -> Text:
    if view.typing:
        return _line(f"filter: {view.filter}_   Enter: done   Esc: none", "reverse")
    numbers = f"nodes {first + 1} to {first + shown} of {total}" if total else "no nodes"
    wanted = f" ({show_plain(view.filter)})" if view.filter else ""
    return _line(f"{numbers}   s: by {view.sort}   /: filter{wanted}   up, down: scroll   q: quit", "reverse")


def _nodes(shown: Sequence[NodeLine], columns: int) -> list[Text]:
    if not shown:
        return [_line("no nodes", "red")]
    is_narrow = columns < NARROW_COLUMNS
    names = _short([line.name for line in shown], columns // 3)
    name_width = max(map(len, (NODE, *names)))
    numbers_width = max(len(_numbers(line.counts)) for line in shown)
    # Beside bar and numbers: full, and where there is room, state and images; each with a gap before it.
    others_width = 6 if is_narrow else 6 + 10 + 8
    bar_width = max(MIN_BAR, columns - name_width - len(GAP) - numbers_width - 1 - others_width)
    # No wider than the longest bar needs.
    pods_width = max(len(PODS_HEADING), *(len(bar(line.counts, bar_width)) for line in shown))
    heading = _line(NODE.ljust(name_width) + GAP + ("" if is_narrow else f"{'state':8}{GAP}"), "bold")
    heading.append(PODS_HEADING.ljust(pods_width) + GAP + ("full" if is_narrow else f"full{GAP}images"))
    texts = [heading]
    for line, name in zip(shown, names, strict=True):
        style = "" if line.state == READY else "red"
        text = _line(name.ljust(name_width) + GAP, style)
        if not is_narrow:
            text.append(f"{line.state:8}{GAP}")
        # In its own colours.
        pods = bar(line.counts, bar_width)
        pods.pad_right(pods_width - len(pods))
        text.append_text(pods)
        text.append(f"{GAP}{line.fullness:4.0%}", style)
        if not is_narrow:
            text.append(f"{GAP}{line.images:6d}", style)
        texts.append(text)
    return texts


def _pulls(lines: Sequence[NodeLine], columns: int, most: int) -> list[Text]:
    by_image: dict[str, list[tuple[str, Pulling]]] = {}
    for line in lines:
        for pull in line.pulling:
            by_image.setdefault(normalise_reference(pull.image), []).append((line.name, pull))
    # Failures first, then the longest waits.
    pulls = sorted(by_image.values(), key=lambda each: (not _fails(each), -_longest(each)))
    if not pulls:
        return []
    shown = pulls[:most]
    nodes = [each[0][0] for each in shown if len(each) == 1]
    names = dict(zip(nodes, _short(nodes, columns // 4), strict=True))
    rows = []
    for each in shown:
        pods = sum(pull.pods for _, pull in each)
        where = names[each[0][0]] if len(each) == 1 else f"{len(each)} nodes"
        what = f"{pods} pod{'' if pods == 1 else 's'} on {where}{', fails' if _fails(each) else ''}"
        rows.append((show_plain(each[0][1].image), _show_age(_longest(each)), what))
    texts = [_line("images awaited", "bold")]
    for row, each in zip(_fitted(rows, columns, 1), shown, strict=True):
        texts.append(_line(row, "red" if _fails(each) else "cyan"))
    return [*texts, _line(f"and {len(pulls) - most} more")] if len(pulls) > most else texts


def _fails(pulls: Sequence[tuple[str, Pulling]]) -> bool:
    return any(pull.is_failing for _, pull in pulls)


def _longest(pulls: Sequence[tuple[str, Pulling]]) -> float:
    return max(pull.waits_seconds for _, pull in pulls)


def _decisions(heading: str, events: Sequence[EventReading], columns: int) -> list[Text]:
    if not events:
        return []
    rows = []
    for event in events:
        is_bound = event.reason == "Scheduled"
        rows.append(
            (
                show_plain("/".join(event.about[1:3])),
                time.strftime("%H:%M:%S", time.gmtime(event.last_us / US)),
                BOUND if is_bound else show_plain(event.reason),
                show_plain(event.note.rpartition(" to ")[2] if is_bound else event.note),
            )
        )
    names = _short([name for name, *_ in rows], columns // 3)
    width = max(map(len, names))
    nodes = [where for _, _, what, where in rows if what == BOUND]
    head_width = len(rows[0][1]) + width + len(BOUND) + 3 * len(GAP)
    short = dict(zip(nodes, _short(nodes, columns - head_width), strict=True))
    texts = [_line(heading, "bold")]
    for name, (_, when, what, where) in zip(names, rows, strict=True):
        # Of a message, the beginning matters.
        texts.append(_line(GAP.join((when, name.ljust(width), what, short[where] if what == BOUND else where))))
    return texts


def _fitted(rows: Sequence[Sequence[str]], columns: int, number: int) -> list[str]:
    """Rows as lines of that width: the first `number` cells are names that share what the others leave."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    room = columns - sum(widths[number:]) - len(GAP) * (len(widths) - 1)
    for index in range(number):
        # A cell that needs less than an equal share leaves more to those after it.
        others = sum(min(width, room // number) for width in widths[index + 1 : number])
        widths[index] = min(widths[index], max(LEAST_LENGTH, room - others))
        room -= widths[index]
    cells = list(zip(*rows, strict=True))
    cells[:number] = [tuple(_short(column, width)) for column, width in zip(cells, widths[:number], strict=False)]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*cells, strict=True)
    ]


def _line(text: str, style: str = "") -> Text:
    """One line that never wraps. Not a plain string, which Rich would parse as markup."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _short(names: Sequence[str], width: int) -> list[str]:
    """Names that fit and can be told apart, one for each of the names."""
    plain = [show_plain(name) for name in names]
    short = shorten(plain, max(LEAST_LENGTH, width))
    return [short[name] for name in plain]


def _show_age(seconds: float) -> str:
    return show_span(round(seconds) * US) if seconds >= 1 else "0 s"


def bar(counts: Mapping[str, int], width: int) -> Text:
    """Pods as letters, to scale when they don't fit, with at least one letter for each class; then their numbers."""
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


def _legend() -> Text:
    text = Text()
    for kind, letter, colour in MARKS:
        text.append(f"{letter} {kind}  ", style=colour)
    return text


class Watcher:
    """The watches that the picture needs."""

    def __init__(self, client: Client, settings: RecorderSettings) -> None:
        self._classes = Classes(settings)
        self._namespace = settings.namespace

        def cache(path: str, read: Callable[[JSONObject], Any], kind: str, fields: str = "") -> WatchCache[Any]:
            return WatchCache(client, path, read, kind=kind, field_selector=fields, has_bookmarks=kind != "events")

        self._nodes = cache("/api/v1/nodes", read_node, "nodes")
        self._pods = cache("/api/v1/pods", lambda item: read_pod(item, (), {}, keep_containers=True), "pods")
        self._events = cache("/apis/events.k8s.io/v1/events", read_event, "events", "reason=Scheduled")
        self._failures = cache("/apis/events.k8s.io/v1/events", read_event, "events", "reason=FailedScheduling")
        self._namespaces = cache("/api/v1/namespaces", lambda item: item["metadata"].get("labels") or {}, "namespaces")
        self._caches = (self._nodes, self._pods, self._events, self._failures, self._namespaces)

    def start(self, stop: threading.Event) -> None:
        """Start a thread for each watch."""
        for cache in self._caches:
            threading.Thread(target=cache.run, args=(stop,), daemon=True).start()

    @property
    def fault(self) -> str:
        """What has not been listed yet, and why; "" when everything has."""
        return next((cache.fault or f"{cache.kind} not listed yet" for cache in self._caches if not cache.synced), "")

    def picture(self) -> Picture:
        """The cluster now."""
        namespaces = self._namespaces.objects()

        def classify(labels: Mapping[str, str], namespace: str) -> str:
            pod_class = self._classes.classify(labels, namespace, namespaces)
            return pod_class.name if pod_class is not None else ""

        events = {**self._events.objects(), **self._failures.objects()}
        return read_picture(
            self._nodes.objects(), self._pods.objects(), events, classify, time.time(), namespace=self._namespace
        )


def watch(client: Client, settings: RecorderSettings, console: Console, *, once: bool) -> str:
    """Draw until q or Ctrl-C, or once. Returns why the cluster could not be read, "" when it could."""
    stop = threading.Event()
    watcher = Watcher(client, settings)
    watcher.start(stop)
    try:
        deadline = time.monotonic() + SYNC_SECONDS
        while watcher.fault:
            if time.monotonic() > deadline:
                return watcher.fault
            time.sleep(0.05)
        if once:
            console.print(show(watcher.picture(), console.width))
            return ""
        with (
            contextlib.suppress(KeyboardInterrupt),
            Keys() as keys,
            Live(console=console, screen=True, auto_refresh=False) as live,
        ):
            _follow(watcher, live, keys)
    finally:
        stop.set()
    return ""


def _follow(watcher: Watcher, live: Live, keys: Keys) -> None:
    """Draw every second and after each key, until one of them quits."""
    console = live.console
    view = View() if keys.is_there and console.is_terminal else None
    while True:
        picture, until = watcher.picture(), time.monotonic() + REFRESH_SECONDS
        while (left := until - time.monotonic()) > 0:
            chosen = choose(picture, view or View())
            drawn, room = _draw(chosen, console.width, console.height, view)
            live.update(drawn, refresh=True)
            for key in keys.read(left):
                changed = press(view, key, room, len(chosen.nodes)) if view is not None else view
                if view is not None and changed is None:
                    return
                view = changed
