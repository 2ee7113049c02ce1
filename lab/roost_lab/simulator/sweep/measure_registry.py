"""Register the figures of a replay: each one's key, title, unit and bound, and how it is read from a result.

Tables, plots, JSON and the terminal show what stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from roost_lab.pages.table import Unit
from roost_lab.simulator.engine.bounds import BOUNDS, Bound
from roost_lab.simulator.engine.results import (
    ELSEWHERE,
    NODE_WAIT,
    NOWHERE,
    ONLY_FULL,
    PULL,
    PULL_WAIT,
    QUEUE,
    START,
    TOTAL,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_lab.simulator.engine.results import HourRow, RunResult

# Bounds that follow from the assumptions or from the figure itself, beside those of `engine/bounds.py`.
FLOOR: Final = "start_floor"
NOTHING: Final = "nothing"
NO_PREEMPTION: Final = "no_preemption"
NO_MOVE: Final = "no_move"
MORE_BOUNDS: Final = (
    Bound(
        FLOOR,
        "start",
        "Binding and starting, as assumed: the time of a start that waits for nothing and pulls nothing.",
    ),
    Bound(
        NOTHING,
        "waited_for_node",
        "None: with enough free room for every launch that comes while a node boots, nobody waits for a node or gives "
        "up, and no placeholder is pending; with room where an image is, none is pulled elsewhere.",
    ),
    Bound(
        NO_PREEMPTION,
        "preempted",
        "None: with enough room beside the placeholders, none has to be pre-empted. Being pre-empted is what they are "
        "for; fewer of them, or none, are pre-empted with more nodes or longer waits.",
    ),
    Bound(
        NO_MOVE,
        "moves",
        "None: where new placeholders come to the right node at once, none has to move. The most is the mover's budget "
        "(`placeholderMover.evictionsPerMinute`).",
    ),
)
ZERO_BOUNDS: Final = frozenset({NOTHING, NO_PREEMPTION, NO_MOVE})
ALL_BOUNDS: Final = (*BOUNDS, *MORE_BOUNDS)


class Measure(NamedTuple):
    """One figure of a replay: how it is read from a result, and how it is shown."""

    key: str
    title: str
    unit: Unit
    read: Callable[[RunResult], float | None]
    # Key of its bound; "": no bound is known.
    bound: str = ""
    # Shown at the head of each report.
    is_headline: bool = False
    # Whether less of it is better; None: neither.
    less_is_better: bool | None = True


def _wait(share: float, part: str = TOTAL) -> Callable[[RunResult], float | None]:
    def read(result: RunResult) -> float | None:
        waits = result.waits.get(part)
        return waits.quantile(share) if waits is not None and waits.count else None

    return read


def _mean(part: str) -> Callable[[RunResult], float | None]:
    def read(result: RunResult) -> float | None:
        waits = result.waits.get(part)
        return waits.mean if waits is not None and waits.count else None

    return read


def _why(where: str) -> Callable[[RunResult], float | None]:
    return lambda result: result.cold_why.get(where, 0)


def _over(seconds: int) -> Callable[[RunResult], float | None]:
    return lambda result: share_of(result.over.get(seconds, 0), result.started + result.given_up + result.left)


def _ratio(result: RunResult) -> float | None:
    return share_of(result.node_hours, result.bounds.get("node_hours", 0))


def share_of(part: float, whole: float) -> float | None:
    """0 to 1; None of an empty whole."""
    return part / whole if whole else None


def _builds(read: Callable[[RunResult], float | None]) -> Callable[[RunResult], float | None]:
    return lambda result: read(result) if result.builds else None


# In the order in which reports show them.
MEASURES: Final = (
    Measure("cold", "cold starts", Unit.COUNT, lambda r: r.cold, "cold", is_headline=True),
    Measure("cold_share", "cold, of tries on a node", Unit.SHARE, lambda r: r.cold_share if r.placed else None, "cold"),
    Measure("cold_nowhere", "cold: image on no node", Unit.COUNT, _why(NOWHERE), "cold_compulsory"),
    Measure("cold_only_full", "cold: only on full nodes", Unit.COUNT, _why(ONLY_FULL), NOTHING),
    Measure("cold_elsewhere", "cold: elsewhere with room", Unit.COUNT, _why(ELSEWHERE), NOTHING),
    Measure("wait_p50", "wait, p50", Unit.SECONDS, _wait(0.5)),
    Measure("wait_p90", "wait, p90", Unit.SECONDS, _wait(0.9)),
    Measure("wait_p95", "wait, p95", Unit.SECONDS, _wait(0.95), is_headline=True),
    Measure("wait_p99", "wait, p99", Unit.SECONDS, _wait(0.99), is_headline=True),
    Measure("wait_p999", "wait, p99.9", Unit.SECONDS, _wait(0.999)),
    Measure("wait_mean", "wait, mean", Unit.SECONDS, _mean(TOTAL)),
    Measure("queue_mean", "of it in the queue", Unit.SECONDS, _mean(QUEUE), NOTHING),
    Measure("node_mean", "of it for room", Unit.SECONDS, _mean(NODE_WAIT), NOTHING),
    Measure("pull_wait_mean", "of it behind other pulls", Unit.SECONDS, _mean(PULL_WAIT), NOTHING),
    Measure("pull_mean", "of it pulling", Unit.SECONDS, _mean(PULL)),
    Measure("start_mean", "of it starting", Unit.SECONDS, _mean(START), FLOOR),
    Measure("over_30", "waits over 30 s", Unit.SHARE, _over(30)),
    Measure("over_60", "waits over 60 s", Unit.SHARE, _over(60)),
    Measure("over_300", "waits over 5 min", Unit.SHARE, _over(300)),
    Measure("node_hours", "node-hours", Unit.MEAN, lambda r: r.node_hours, "node_hours", is_headline=True),
    Measure("node_hours_ratio", "node-hours, of their bound", Unit.SHARE, _ratio),
    Measure("peak_nodes", "nodes at most", Unit.COUNT, lambda r: r.peak_nodes, "peak_nodes"),
    Measure("nodes_created", "nodes created", Unit.COUNT, lambda r: r.nodes_created, "peak_nodes"),
    Measure(
        "waited_for_node",
        "launches that found no room",
        Unit.COUNT,
        lambda r: r.waited_for_node,
        NOTHING,
        is_headline=True,
    ),
    Measure("timeouts", "tries beyond the spawner's patience", Unit.COUNT, lambda r: r.timeouts, NOTHING),
    Measure("given_up", "launches given up", Unit.COUNT, lambda r: r.given_up, NOTHING),
    Measure("left", "people who left waiting", Unit.COUNT, lambda r: r.left, NOTHING),
    Measure("still_waiting", "launches waiting at the end", Unit.COUNT, lambda r: r.still_waiting, NOTHING),
    Measure(
        "preempted",
        "placeholders pre-empted",
        Unit.COUNT,
        lambda r: r.placeholder_preemptions,
        NO_PREEMPTION,
        less_is_better=None,
    ),
    Measure("users_preempted", "users pre-empted", Unit.COUNT, lambda r: r.users_preempted, NOTHING),
    Measure("moves", "placeholders moved", Unit.COUNT, lambda r: r.moves, NO_MOVE, is_headline=True),
    Measure(
        "placeholder_pending",
        "placeholders pending",
        Unit.SECONDS,
        lambda r: r.placeholder_pending_seconds,
        NOTHING,
    ),
    Measure("registry_bytes", "from registries", Unit.BYTES, lambda r: r.registry_bytes),
    Measure("cold_bytes", "pulled for waiting users", Unit.BYTES, lambda r: r.cold_bytes),
    Measure("background_pulls", "pulls ahead", Unit.COUNT, lambda r: r.background_pulls, less_is_better=None),
    Measure("background_bytes", "pulled ahead", Unit.BYTES, lambda r: r.background_bytes),
    Measure(
        "images_collected",
        "images collected by kubelets",
        Unit.COUNT,
        lambda r: r.images_collected,
    ),
    Measure("collected_then_pulled", "and pulled there again", Unit.COUNT, lambda r: r.collected_then_pulled, NOTHING),
    Measure("fullest_disk", "images on the fullest disk", Unit.BYTES, lambda r: r.greatest_disk_bytes),
    Measure("attempts", "attempts", Unit.COUNT, lambda r: r.attempts, less_is_better=None),
    Measure(
        "refused",
        "refused by quotas",
        Unit.COUNT,
        lambda r: r.refused_by_repository + r.refused_by_total,
        less_is_better=None,
    ),
    Measure("started", "started", Unit.COUNT, lambda r: r.started, less_is_better=None),
    Measure("tries", "tries to start", Unit.COUNT, lambda r: r.tries, less_is_better=None),
    Measure("placed", "tries that came to a node", Unit.COUNT, lambda r: r.placed, less_is_better=None),
    Measure("builds", "builds", Unit.COUNT, _builds(lambda r: r.builds), less_is_better=None),
    Measure(
        "build_cache_hits",
        "builds with a warm cache",
        Unit.COUNT,
        _builds(lambda r: r.build_cache_hits),
        "build_cache_hits",
        less_is_better=False,
    ),
    Measure("build_p50", "build, p50", Unit.SECONDS, _builds(lambda r: r.build_seconds.quantile(0.5))),
    Measure("build_p95", "build, p95", Unit.SECONDS, _builds(lambda r: r.build_seconds.quantile(0.95))),
    Measure(
        "busiest_builder_share",
        "builds on the busiest node",
        Unit.SHARE,
        _builds(lambda r: r.busiest_builder_share),
    ),
)
BY_KEY: Final = {measure.key: measure for measure in MEASURES}


class HourMeasure(NamedTuple):
    """One figure over time: the median over seeds, and the mean of the hours that a row spans."""

    key: str
    title: str
    unit: Unit
    read: Callable[[HourRow], float]
    # Title of its plot; "": not plotted.
    plot: str = ""
    # Given: the sum over all hours and seeds is divided by the sum of this.
    per: Callable[[HourRow], float] | None = None


HOUR_MEASURES: Final = (
    HourMeasure("launches", "launches an hour", Unit.MEAN, lambda h: h.launches),
    HourMeasure("cold", "cold", Unit.MEAN, lambda h: h.cold, "Cold starts an hour"),
    HourMeasure("refused", "refused", Unit.MEAN, lambda h: h.refused),
    HourMeasure(
        "wait_seconds", "mean wait", Unit.SECONDS, lambda h: h.wait_seconds, "Mean wait, s", lambda h: h.launches
    ),
    HourMeasure("users", "users", Unit.MEAN, lambda h: h.users, "Users with a server"),
    HourMeasure("placeholders", "placeholders", Unit.MEAN, lambda h: h.placeholders),
    HourMeasure("nodes", "nodes", Unit.MEAN, lambda h: h.nodes, "Nodes"),
)
