"""The figures of a replay: key, title, unit and bound of each, and how it is read from a result.

Tables, plots, JSON and the terminal show the figures that are listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from roost_lab.pages.table import Unit
from roost_lab.simulator.engine import results
from roost_lab.simulator.engine.histogram import Histogram

# Reads a figure of a result; None: there was nothing to measure.
Reader = Callable[[results.RunResult], float | None]


class Measure(NamedTuple):
    """One figure of a replay: how it is read from a result, and how it is shown."""

    key: str
    title: str
    unit: Unit
    read: Reader
    # Key of its bound in RunResult.bounds; "": it has none.
    bound: str = ""
    # Whether each report shows it at its head.
    is_headline: bool = False


def _waits_of(result: results.RunResult, part: str) -> Histogram | None:
    """The durations of a part of all waits; None where there are none. part: as of `results`."""
    waits = result.waits.get(part)
    return waits if waits is not None and waits.count else None


def _wait_quantile(share: float) -> Reader:
    """A reader of a quantile of whole waits, in seconds. share: 0 to 1."""

    def read(result: results.RunResult) -> float | None:
        waits = _waits_of(result, results.TOTAL)
        return None if waits is None else waits.quantile(share)

    return read


def _mean(part: str) -> Reader:
    """A reader of the mean of a part of all waits, in seconds."""

    def read(result: results.RunResult) -> float | None:
        waits = _waits_of(result, part)
        return None if waits is None else waits.mean

    return read


def _cold_because(where: str) -> Reader:
    """A reader of the number of cold starts whose image was there when they were bound.

    where: NOWHERE, ONLY_FULL or ELSEWHERE of `results`.
    """

    def read(result: results.RunResult) -> float | None:
        return result.cold_why.get(where, 0)

    return read


def _of_builds(read_builds: Reader) -> Reader:
    """A reader of a figure of builds; it gives None where nothing was built."""

    def read(result: results.RunResult) -> float | None:
        return read_builds(result) if result.builds else None

    return read


# The key of a figure and of its bound.
_HITS: Final = "build_cache_hits"
# In the order in which reports show them.
MEASURES: Final = (
    Measure(
        "cold", "cold starts", Unit.COUNT, lambda result: result.cold, "cold", is_headline=True
    ),
    Measure(
        "cold_share",
        "cold, of tries on a node",
        Unit.SHARE,
        lambda result: result.cold_share if result.placed else None,
    ),
    Measure(
        "cold_nowhere",
        "cold: image on no node",
        Unit.COUNT,
        _cold_because(results.NOWHERE),
        "cold_compulsory",
    ),
    Measure(
        "cold_only_full", "cold: only on full nodes", Unit.COUNT, _cold_because(results.ONLY_FULL)
    ),
    Measure(
        "cold_elsewhere", "cold: elsewhere with room", Unit.COUNT, _cold_because(results.ELSEWHERE)
    ),
    Measure("wait_p50", "wait, p50", Unit.SECONDS, _wait_quantile(0.5)),
    Measure("wait_p90", "wait, p90", Unit.SECONDS, _wait_quantile(0.9)),
    Measure("wait_p95", "wait, p95", Unit.SECONDS, _wait_quantile(0.95), is_headline=True),
    Measure("wait_p99", "wait, p99", Unit.SECONDS, _wait_quantile(0.99), is_headline=True),
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
        lambda result: result.node_hours,
        "node_hours",
        is_headline=True,
    ),
    Measure(
        "peak_nodes", "nodes at most", Unit.COUNT, lambda result: result.peak_nodes, "peak_nodes"
    ),
    Measure(
        "nodes_created",
        "nodes created",
        Unit.COUNT,
        lambda result: result.nodes_created,
        "peak_nodes",
    ),
    Measure(
        "waited_for_node",
        "launches that found no room",
        Unit.COUNT,
        lambda result: result.waited_for_node,
        is_headline=True,
    ),
    Measure(
        "timeouts",
        "tries beyond the spawner's patience",
        Unit.COUNT,
        lambda result: result.timeouts,
    ),
    Measure("given_up", "launches given up", Unit.COUNT, lambda result: result.given_up),
    Measure(
        "still_waiting",
        "launches waiting at the end",
        Unit.COUNT,
        lambda result: result.still_waiting,
    ),
    Measure(
        "preempted",
        "placeholders pre-empted",
        Unit.COUNT,
        lambda result: result.placeholder_preemptions,
    ),
    Measure(
        "users_preempted", "users pre-empted", Unit.COUNT, lambda result: result.users_preempted
    ),
    Measure(
        "moves", "placeholders moved", Unit.COUNT, lambda result: result.moves, is_headline=True
    ),
    Measure(
        "placeholder_pending",
        "placeholders pending",
        Unit.SECONDS,
        lambda result: result.placeholder_pending_seconds,
    ),
    Measure("registry_bytes", "from registries", Unit.BYTES, lambda result: result.registry_bytes),
    Measure("background_pulls", "pulls ahead", Unit.COUNT, lambda result: result.background_pulls),
    Measure("background_bytes", "pulled ahead", Unit.BYTES, lambda result: result.background_bytes),
    Measure(
        "images_collected",
        "images collected by kubelets",
        Unit.COUNT,
        lambda result: result.images_collected,
    ),
    Measure(
        "fullest_disk",
        "images on the fullest disk",
        Unit.BYTES,
        lambda result: result.greatest_disk_bytes,
    ),
    Measure("attempts", "attempts", Unit.COUNT, lambda result: result.attempts),
    Measure(
        "refused",
        "refused by limits",
        Unit.COUNT,
        lambda result: result.refused_by_repository + result.refused_by_total,
    ),
    Measure("started", "started", Unit.COUNT, lambda result: result.started),
    Measure("tries", "tries to start", Unit.COUNT, lambda result: result.tries),
    Measure("placed", "tries that came to a node", Unit.COUNT, lambda result: result.placed),
    Measure("builds", "builds", Unit.COUNT, _of_builds(lambda result: result.builds)),
    Measure(
        _HITS,
        "builds with a warm cache",
        Unit.COUNT,
        _of_builds(lambda result: result.build_cache_hits),
        _HITS,
    ),
    Measure(
        "build_p50",
        "build, p50",
        Unit.SECONDS,
        _of_builds(lambda result: result.build_seconds.quantile(0.5)),
    ),
    Measure(
        "build_p95",
        "build, p95",
        Unit.SECONDS,
        _of_builds(lambda result: result.build_seconds.quantile(0.95)),
    ),
    Measure(
        "busiest_builder_share",
        "builds on the busiest node",
        Unit.SHARE,
        _of_builds(lambda result: result.busiest_builder_share),
    ),
)
BY_KEY: Final = {measure.key: measure for measure in MEASURES}
