"""Show the cluster as it is: each node as a bar of users, placeholders and builds, what is pulling, what was decided.

`read_picture` is pure; `show` draws it with Rich; `watch` keeps it fresh in the terminal until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cluster.watch_cache import WatchCache
from placement.classes import Classes
from placement.scheduling.objects import CPU, MEMORY, PODS
from recorder.reading import SeenEvent, SeenNode, SeenPod, read_event, read_node, read_pod
from recorder.why import show_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console, RenderableType

    from cluster.client import Client, JSONObject
    from recorder.settings import RecorderSettings

USER, PLACEHOLDER, BUILD, OTHER = "user", "placeholder", "build", "other"
# Drawn in this order; the letter also tells classes apart without colour.
MARKS: Final = (
    (USER, "U", "green"),
    (BUILD, "B", "magenta"),
    (PLACEHOLDER, "p", "yellow"),
    (OTHER, ".", "bright_black"),
)
DECISIONS: Final = 8
BAR_WIDTH: Final = 40
REFRESH_SECONDS: Final = 1.0
# A container that waits with one of these has its image on the way.
PULLING_REASONS: Final = frozenset({"ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff"})
SYNC_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node."""

    name: str
    # Ready, NotReady, cordoned, leaving.
    state: str
    counts: Mapping[str, int]
    # Share of allocatable that is asked for, 0 to 1: of the scarcer of CPU and memory, of pods where there is neither.
    fullness: float
    images: int
    # Pods whose image is on its way, `namespace/name`, by how long they wait.
    pulling: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster at one moment."""

    nodes: Sequence[NodeLine]
    # Class -> pods without a node, and how long the oldest of them waits, in seconds.
    pending: Mapping[str, tuple[int, float]]
    # Newest first.
    decisions: Sequence[SeenEvent]


def read_picture(
    nodes: Mapping[str, SeenNode],
    pods: Mapping[str, SeenPod],
    events: Mapping[str, SeenEvent],
    classify: Callable[[Mapping[str, str], str], str],
    now: float,
) -> Picture:
    """Draw together what is known; `now` in seconds since 1970."""
    by_node: dict[str, list[tuple[str, SeenPod]]] = {}
    pending: dict[str, tuple[int, float]] = {}
    for key, pod in pods.items():
        if pod.state.is_finished:
            continue
        if pod.state.node_name:
            by_node.setdefault(pod.state.node_name, []).append((key, pod))
        else:
            kind = _kind(pod, classify)
            count, oldest = pending.get(kind, (0, 0.0))
            pending[kind] = count + 1, max(oldest, now - pod.state.created)
    lines = [_node_line(node, by_node.get(name, []), classify, now) for name, node in sorted(nodes.items())]
    decided = sorted(events.values(), key=lambda event: -event.last_us)[:DECISIONS]
    return Picture(lines, pending, decided)


def _kind(pod: SeenPod, classify: Callable[[Mapping[str, str], str], str]) -> str:
    found = classify(pod.state.labels, pod.state.namespace)
    return found if found in (USER, PLACEHOLDER, BUILD) else OTHER


def _node_line(
    node: SeenNode,
    pods: Sequence[tuple[str, SeenPod]],
    classify: Callable[[Mapping[str, str], str], str],
    now: float,
) -> NodeLine:
    counts = Counter(_kind(pod, classify) for _, pod in pods)
    fact, allocatable = node.state.fact, node.state.allocatable
    asked: Counter[str] = Counter({PODS: len(pods)})
    for _, pod in pods:
        asked.update(dict(pod.state.spec.requests))
    shares = [asked[name] / allocatable[name] for name in (CPU, MEMORY, PODS) if allocatable.get(name)]
    pulling = [
        (key, now - pod.state.created)
        for key, pod in pods
        if any(one.waiting_reason in PULLING_REASONS and not one.image_id for one in pod.state.containers)
    ]
    state = "Ready" if fact.ready else "NotReady"
    if node.state.leaving:
        state = "leaving"
    elif fact.unschedulable:
        state = "cordoned"
    return NodeLine(
        name=fact.name,
        state=state,
        counts=counts,
        fullness=max(shares, default=0.0),
        images=len(node.state.images),
        pulling=sorted(pulling, key=lambda one: -one[1]),
    )


def show(picture: Picture, width: int = BAR_WIDTH) -> RenderableType:
    """The picture for a terminal."""
    table = Table(expand=False, header_style="bold")
    for heading in ("node", "state", "pods", "full", "images", "pulling"):
        table.add_column(heading, no_wrap=heading == "pods", overflow="ellipsis")
    for line in picture.nodes:
        style = "" if line.state == "Ready" else "red"
        pulling = f"{len(line.pulling)}, {line.pulling[0][1]:.0f} s" if line.pulling else ""
        table.add_row(
            Text(show_plain(line.name), style=style),
            Text(line.state, style=style),
            bar(line.counts, width),
            f"{line.fullness:.0%}",
            str(line.images),
            Text(pulling, style="cyan"),
        )
    parts: list[RenderableType] = [_legend(), table]
    waiting = [
        f"{count} {kind}{'' if count == 1 else 's'}, oldest {age:.0f} s"
        for kind, (count, age) in sorted(picture.pending.items())
    ]
    parts.append(Text(f"pending: {'; '.join(waiting) or 'none'}"))
    if picture.decisions:
        decided = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for event in picture.decisions:
            moment = time.strftime("%H:%M:%S", time.gmtime(event.last_us / 1_000_000))
            what = "->" if event.reason == "Scheduled" else event.reason
            where = event.note.rpartition(" to ")[2] if event.reason == "Scheduled" else event.note[:100]
            # As texts: in plain strings the table looks for markup.
            texts = (Text(show_plain(one)) for one in ("/".join(event.about[1:3]), what))
            decided.add_row(moment, *texts, Text(show_plain(where), overflow="ellipsis"))
        parts += [Text("last decisions (UTC)", style="bold"), decided]
    return Group(*parts)


def bar(counts: Mapping[str, int], width: int) -> Text:
    """Pods as letters; more than fit are drawn to scale, and never less than one letter a class."""
    total = sum(counts.values())
    text = Text()
    for kind, letter, colour in MARKS:
        count = counts.get(kind, 0)
        if count:
            length = count if total <= width else max(1, count * width // total)
            text.append(letter * length, style=colour)
    numbers = " ".join(f"{counts[kind]}{letter}" for kind, letter, _ in MARKS if counts.get(kind))
    text.append(f" {numbers}" if numbers else "-", style="dim")
    return text


def _legend() -> Text:
    text = Text()
    for kind, letter, colour in MARKS:
        text.append(f"{letter} {kind}  ", style=colour)
    return text


class Watcher:
    """Watches what the picture needs."""

    def __init__(self, client: Client, settings: RecorderSettings) -> None:
        self._classes = Classes(settings)

        def cache(path: str, read: Callable[[JSONObject], Any], kind: str, fields: str = "") -> WatchCache[Any]:
            return WatchCache(client, path, read, kind=kind, field_selector=fields)

        self._nodes = cache("/api/v1/nodes", read_node, "nodes")
        self._pods = cache("/api/v1/pods", lambda item: read_pod(item, (), {}, keep_containers=True), "pods")
        self._events = cache("/apis/events.k8s.io/v1/events", read_event, "events", "reason=Scheduled")
        self._failures = cache("/apis/events.k8s.io/v1/events", read_event, "events", "reason=FailedScheduling")
        self._namespaces = cache("/api/v1/namespaces", lambda item: item["metadata"].get("labels") or {}, "namespaces")
        self._caches = (self._nodes, self._pods, self._events, self._failures, self._namespaces)

    def start(self, stop: threading.Event) -> None:
        """Give each watch its thread."""
        for one in self._caches:
            threading.Thread(target=one.run, args=(stop,), daemon=True).start()

    @property
    def fault(self) -> str:
        """What isn't there yet, and why; "" when all is."""
        return next((one.fault or f"{one.kind} not listed yet" for one in self._caches if not one.synced), "")

    def picture(self) -> Picture:
        """The cluster now."""
        namespaces = self._namespaces.objects()

        def classify(labels: Mapping[str, str], namespace: str) -> str:
            found = self._classes.classify(labels, namespace, namespaces)
            return found.name if found is not None else ""

        events = {**self._events.objects(), **self._failures.objects()}
        return read_picture(self._nodes.objects(), self._pods.objects(), events, classify, time.time())


def watch(client: Client, settings: RecorderSettings, console: Console, *, once: bool) -> str:
    """Draw until Ctrl-C, or once. Returns what could not be read, "" when all could."""
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
            console.print(show(watcher.picture()))
            return ""
        with contextlib.suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(show(watcher.picture(), max(10, console.width - 70)), refresh=True)
                time.sleep(REFRESH_SECONDS)
    finally:
        stop.set()
    return ""
