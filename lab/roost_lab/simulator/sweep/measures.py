"""The figures of a replay: each one's key, title, unit and bound, and how it is read from a result.

Tables, plots, JSON and the terminal show what stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from roost_lab.pages.table import Unit
from roost_lab.simulator.engine import results
from roost_lab.simulator.engine.histogram import Histogram


class Measure(NamedTuple):
    """One figure of a replay: how it is read from a result, and how it is shown."""

    key: str
    title: str
    unit: Unit
    read: Callable[[results.RunResult], float | None]
    # Key of its bound; "": no bound is known.
    bound: str = ""
    # Shown at the head of each report.
    is_headline: bool = False


def _waits(
    read: Callable[[Histogram], float], part: str
) -> Callable[[results.RunResult], float | None]:
    return lambda result: (
        read(waits) if (waits := result.waits.get(part)) is not None and waits.count else None
    )


def _wait(share: float) -> Callable[[results.RunResult], float | None]:
    return _waits(lambda waits: waits.quantile(share), results.TOTAL)


def _mean(part: str) -> Callable[[results.RunResult], float | None]:
    return _waits(lambda waits: waits.mean, part)


def _why(where: str) -> Callable[[results.RunResult], float | None]:
    return lambda result: result.cold_why.get(where, 0)


def _builds(
    read: Callable[[results.RunResult], float | None],
) -> Callable[[results.RunResult], float | None]:
    return lambda result: read(result) if result.builds else None


# A figure and its bound are called the same.
_HITS: Final = "build_cache_hits"
# In the order in which reports show them.
MEASURES: Final = (
    Measure("cold", "cold starts", Unit.COUNT, lambda r: r.cold, "cold", is_headline=True),
    Measure(
        "cold_share",
        "cold, of tries on a node",
        Unit.SHARE,
        lambda r: r.cold_share if r.placed else None,
    ),
    Measure(
        "cold_nowhere",
        "cold: image on no node",
        Unit.COUNT,
        _why(results.NOWHERE),
        "cold_compulsory",
    ),
    Measure("cold_only_full", "cold: only on full nodes", Unit.COUNT, _why(results.ONLY_FULL)),
    Measure("cold_elsewhere", "cold: elsewhere with room", Unit.COUNT, _why(results.ELSEWHERE)),
    Measure("wait_p50", "wait, p50", Unit.SECONDS, _wait(0.5)),
    Measure("wait_p90", "wait, p90", Unit.SECONDS, _wait(0.9)),
    Measure("wait_p95", "wait, p95", Unit.SECONDS, _wait(0.95), is_headline=True),
    Measure("wait_p99", "wait, p99", Unit.SECONDS, _wait(0.99), is_headline=True),
    Measure("wait_mean", "wait, mean", Unit.SECONDS, _mean(results.TOTAL)),
    Measure("queue_mean", "of it in the queue", Unit.SECONDS, _mean(results.QUEUE)),
    Measure("node_mean", "of it for room", Unit.SECONDS, _mean(results.NODE_WAIT)),
    Measure("pull_wait_mean", "of it behind other pulls", Unit.SECONDS, _mean(results.PULL_WAIT)),
    Measure("pull_mean", "of it pulling", Unit.SECONDS, _mean(results.PULL)),
    Measure("start_mean", "of it starting", Unit.SECONDS, _mean(results.START)),
    Measure("answer_mean", "of it until it answers", Unit.SECONDS, _mean(results.ANSWER)),
    Measure(
        "node_hours",
        "node-hours",
        Unit.MEAN,
        lambda r: r.node_hours,
        "node_hours",
        is_headline=True,
    ),
    Measure("peak_nodes", "nodes at most", Unit.COUNT, lambda r: r.peak_nodes, "peak_nodes"),
    Measure("nodes_created", "nodes created", Unit.COUNT, lambda r: r.nodes_created, "peak_nodes"),
    Measure(
        "waited_for_node",
        "launches that found no room",
        Unit.COUNT,
        lambda r: r.waited_for_node,
        is_headline=True,
    ),
    Measure("timeouts", "tries beyond the spawner's patience", Unit.COUNT, lambda r: r.timeouts),
    Measure("given_up", "launches given up", Unit.COUNT, lambda r: r.given_up),
    Measure("still_waiting", "launches waiting at the end", Unit.COUNT, lambda r: r.still_waiting),
    Measure(
        "preempted", "placeholders pre-empted", Unit.COUNT, lambda r: r.placeholder_preemptions
    ),
    Measure("users_preempted", "users pre-empted", Unit.COUNT, lambda r: r.users_preempted),
    Measure("moves", "placeholders moved", Unit.COUNT, lambda r: r.moves, is_headline=True),
    Measure(
        "placeholder_pending",
        "placeholders pending",
        Unit.SECONDS,
        lambda r: r.placeholder_pending_seconds,
    ),
    Measure("registry_bytes", "from registries", Unit.BYTES, lambda r: r.registry_bytes),
    Measure("background_pulls", "pulls ahead", Unit.COUNT, lambda r: r.background_pulls),
    Measure("background_bytes", "pulled ahead", Unit.BYTES, lambda r: r.background_bytes),
    Measure(
        "images_collected", "images collected by kubelets", Unit.COUNT, lambda r: r.images_collected
    ),
    Measure(
        "fullest_disk", "images on the fullest disk", Unit.BYTES, lambda r: r.greatest_disk_bytes
    ),
    Measure("attempts", "attempts", Unit.COUNT, lambda r: r.attempts),
    Measure(
        "refused",
        "refused by limits",
        Unit.COUNT,
        lambda r: r.refused_by_repository + r.refused_by_total,
    ),
    Measure("started", "started", Unit.COUNT, lambda r: r.started),
    Measure("tries", "tries to start", Unit.COUNT, lambda r: r.tries),
    Measure("placed", "tries that came to a node", Unit.COUNT, lambda r: r.placed),
    Measure("builds", "builds", Unit.COUNT, _builds(lambda r: r.builds)),
    Measure(
        _HITS, "builds with a warm cache", Unit.COUNT, _builds(lambda r: r.build_cache_hits), _HITS
    ),
    Measure(
        "build_p50", "build, p50", Unit.SECONDS, _builds(lambda r: r.build_seconds.quantile(0.5))
    ),
    Measure(
        "build_p95", "build, p95", Unit.SECONDS, _builds(lambda r: r.build_seconds.quantile(0.95))
    ),
    Measure(
        "busiest_builder_share",
        "builds on the busiest node",
        Unit.SHARE,
        _builds(lambda r: r.busiest_builder_share),
    ),
)
BY_KEY: Final = {measure.key: measure for measure in MEASURES}
