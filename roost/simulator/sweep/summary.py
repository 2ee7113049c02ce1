"""Sum up a sweep's results: each figure as median and range over seeds, its bound, and policies compared by seed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost.pages.table import Unit
from roost.simulator.engine.bounds import BOUNDS, Bound
from roost.simulator.engine.histogram import Histogram, merged
from roost.simulator.engine.results import (
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
from roost.simulator.setup.checks import show_assumption

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roost.simulator.engine.results import RunResult
    from roost.simulator.setup.assumptions import Assumptions

# Bounds that follow from the assumptions or from the figure itself, beside those of roost/simulator/engine/bounds.py.
FLOOR: Final = "start_floor"
NOTHING: Final = "nothing"
NO_PREEMPTION: Final = "no_preemption"
NO_MOVE: Final = "no_move"
MORE_BOUNDS: Final = (
    Bound(
        FLOOR, "start", "Binding and starting, as assumed: what a start takes that waits for nothing and pulls nothing."
    ),
    Bound(
        NOTHING,
        "waited_for_node",
        "None: with free seats for all launches that come while a node boots, nobody waits for one or gives up, and no "
        "placeholder is pending; with room where an image is, none is pulled elsewhere.",
    ),
    Bound(
        NO_PREEMPTION,
        "preempted",
        "None: where seats are free beside the placeholders', no placeholder has to go. Being pre-empted is what they "
        "are for; fewer of them, or none, go with more nodes or longer waits.",
    ),
    Bound(
        NO_MOVE,
        "moves",
        "None: where new placeholders come to the right node at once, none has to move. The most is the mover's budget "
        "(`placeholderMover.evictionsPerMinute`).",
    ),
)
_ZERO: Final = frozenset({NOTHING, NO_PREEMPTION, NO_MOVE})
_WAITS: Final = "waits"
_BY_FIGURE: Final = frozenset(bound.key for bound in BOUNDS if bound.by_figure)
ALL_BOUNDS: Final = (*BOUNDS, *MORE_BOUNDS)


class Measure(NamedTuple):
    """One figure of a replay."""

    key: str
    title: str
    unit: Unit
    read: Callable[[RunResult], float | None]
    # Key of its bound; "": none is known.
    bound: str = ""
    # Stands at the head of each report.
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
    return lambda result: _share(result.over.get(seconds, 0), result.started + result.given_up)


def _ratio(result: RunResult) -> float | None:
    return _share(result.node_hours, result.bounds.get("node_hours", 0))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _builds(read: Callable[[RunResult], float | None]) -> Callable[[RunResult], float | None]:
    return lambda result: read(result) if result.builds else None


# In the order in which they are told.
MEASURES: Final = (
    Measure("cold", "cold starts", Unit.COUNT, lambda r: r.cold, "cold", is_headline=True),
    Measure("cold_share", "cold, of tries on a node", Unit.SHARE, lambda r: r.cold_share if r.placed else None, "cold"),
    Measure("cold_nowhere", "cold: image on no node", Unit.COUNT, _why(NOWHERE), "cold_compulsory"),
    Measure("cold_only_full", "cold: only on full nodes", Unit.COUNT, _why(ONLY_FULL), NOTHING),
    Measure("cold_elsewhere", "cold: elsewhere with room", Unit.COUNT, _why(ELSEWHERE), NOTHING),
    Measure("wait_p50", "wait, p50", Unit.SECONDS, _wait(0.5), _WAITS),
    Measure("wait_p90", "wait, p90", Unit.SECONDS, _wait(0.9), _WAITS),
    Measure("wait_p95", "wait, p95", Unit.SECONDS, _wait(0.95), _WAITS, is_headline=True),
    Measure("wait_p99", "wait, p99", Unit.SECONDS, _wait(0.99), _WAITS, is_headline=True),
    Measure("wait_p999", "wait, p99.9", Unit.SECONDS, _wait(0.999), _WAITS),
    Measure("wait_mean", "wait, mean", Unit.SECONDS, _mean(TOTAL), _WAITS),
    Measure("queue_mean", "of it in the queue", Unit.SECONDS, _mean(QUEUE), NOTHING),
    Measure("node_mean", "of it for a node", Unit.SECONDS, _mean(NODE_WAIT), NOTHING),
    Measure("pull_wait_mean", "of it behind other pulls", Unit.SECONDS, _mean(PULL_WAIT), NOTHING),
    Measure("pull_mean", "of it pulling", Unit.SECONDS, _mean(PULL)),
    Measure("start_mean", "of it starting", Unit.SECONDS, _mean(START), FLOOR),
    Measure("over_30", "waits over 30 s", Unit.SHARE, _over(30), _WAITS),
    Measure("over_60", "waits over 60 s", Unit.SHARE, _over(60), _WAITS),
    Measure("over_300", "waits over 5 min", Unit.SHARE, _over(300), _WAITS),
    Measure("node_hours", "node-hours", Unit.MEAN, lambda r: r.node_hours, "node_hours", is_headline=True),
    Measure("node_hours_ratio", "node-hours, of their bound", Unit.SHARE, _ratio),
    Measure("peak_nodes", "nodes at most", Unit.COUNT, lambda r: r.peak_nodes, "peak_nodes"),
    Measure("nodes_created", "nodes created", Unit.COUNT, lambda r: r.nodes_created, "peak_nodes"),
    Measure(
        "waited_for_node",
        "starts that waited for a node",
        Unit.COUNT,
        lambda r: r.waited_for_node,
        NOTHING,
        is_headline=True,
    ),
    Measure("timeouts", "tries beyond the spawner's patience", Unit.COUNT, lambda r: r.timeouts, NOTHING),
    Measure("given_up", "launches given up", Unit.COUNT, lambda r: r.given_up, NOTHING),
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
    Measure("registry_bytes", "from registries", Unit.BYTES, lambda r: r.registry_bytes, "registry_bytes"),
    Measure("node_bytes", "each layer once a node", Unit.BYTES, lambda r: r.bounds.get("node_bytes"), "registry_bytes"),
    Measure("cold_bytes", "pulled for waiting users", Unit.BYTES, lambda r: r.cold_bytes, "cold_bytes"),
    Measure("background_pulls", "pulls ahead", Unit.COUNT, lambda r: r.background_pulls, less_is_better=None),
    Measure("background_bytes", "pulled ahead", Unit.BYTES, lambda r: r.background_bytes),
    Measure(
        "images_collected",
        "images collected by kubelets",
        Unit.COUNT,
        lambda r: r.images_collected,
        "images_collected",
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
    Measure("build_p50", "build, p50", Unit.SECONDS, _builds(lambda r: r.build_seconds.quantile(0.5)), "build_seconds"),
    Measure(
        "build_p95", "build, p95", Unit.SECONDS, _builds(lambda r: r.build_seconds.quantile(0.95)), "build_seconds"
    ),
    Measure(
        "busiest_builder_share",
        "builds on the busiest node",
        Unit.SHARE,
        _builds(lambda r: r.busiest_builder_share),
        "busiest_builder_share",
    ),
)
BY_KEY: Final = {measure.key: measure for measure in MEASURES}


class Value(NamedTuple):
    """One figure over seeds."""

    median: float
    least: float
    greatest: float
    # In the order of Summary.seeds.
    each: tuple[float, ...]
    # Its bound's median; None: none is known.
    bound: float | None


class Change(NamedTuple):
    """One figure of a policy as a share of the first policy's, less one, seed by seed."""

    median: float
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class WorldSetting:
    """One setting of the sweep."""

    # What differs from the usual assumptions.
    setting: Mapping[str, Any]
    assumptions: Assumptions

    @property
    def name(self) -> str:
        """For people."""
        return ", ".join(f"{name}={show_assumption(value)}" for name, value in self.setting.items()) or "as usual"


@dataclass(frozen=True)
class Summary:
    """The results of a sweep by world and policy; every seed has all of them. The first world is told in full."""

    worlds: Sequence[WorldSetting]
    policies: Sequence[str]
    seeds: Sequence[int]
    # (place in worlds, policy) -> results in the order of seeds.
    runs: Mapping[tuple[int, str], Sequence[RunResult]]
    # Policy -> assumptions that it alone has otherwise, in every world.
    needs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def value(self, key: str, policy: str, world: int = 0) -> Value | None:
        """One figure; None where it doesn't occur."""
        measure = BY_KEY[key]
        runs = self.runs[world, policy]
        found = [one for one in map(measure.read, runs) if one is not None]
        if not found:
            return None
        bounds = [one for one in (self._bound(measure, run, world) for run in runs) if one is not None]
        return Value(median(found), min(found), max(found), tuple(found), median(bounds) if bounds else None)

    def change(self, key: str, policy: str, world: int = 0) -> Change | None:
        """Against the first policy, which has the same launches, sizes and boots in each seed; None of nothing."""
        read = BY_KEY[key].read
        pairs = [
            (read(first), read(one))
            for first, one in zip(self.runs[world, self.policies[0]], self.runs[world, policy], strict=True)
        ]
        shares = [one / first - 1 for first, one in pairs if first and one is not None]
        return Change(median(shares), min(shares), max(shares)) if shares else None

    def waits(self, policy: str, part: str = TOTAL, world: int = 0) -> Histogram:
        """The waits of all seeds together."""
        return merged(run.waits[part] for run in self.runs[world, policy] if part in run.waits)

    def occurring(self, world: int = 0) -> list[Measure]:
        """Figures that aren't nothing under every policy."""
        found = []
        for measure in MEASURES:
            values = [self.value(measure.key, policy, world) for policy in self.policies]
            if any(value is not None and value.greatest for value in values):
                found.append(measure)
        return found

    def varied(self) -> dict[str, list[int]]:
        """Assumption that differs from the first world's -> places in worlds, the first among them, in their order."""
        first = self.worlds[0]
        found: dict[str, list[int]] = {}
        for place, world in enumerate(self.worlds):
            names = [
                one.name for one in fields(world.assumptions) if value_of(world, one.name) != value_of(first, one.name)
            ]
            if len(names) == 1:
                found.setdefault(names[0], [0]).append(place)
        return {
            name: sorted(places, key=lambda one: _order(value_of(self.worlds[one], name)))
            for name, places in found.items()
        }

    def needs_of(self, policy: str) -> str:
        """What the policy alone has otherwise, for people; "": nothing."""
        return ", ".join(f"{name}={show_assumption(value)}" for name, value in self.needs.get(policy, {}).items())

    def _bound(self, measure: Measure, run: RunResult, world: int) -> float | None:
        if measure.bound in _ZERO:
            return 0.0
        if measure.bound == FLOOR:
            assumptions = self.worlds[world].assumptions
            return assumptions.bind_seconds + assumptions.start_seconds
        if measure.bound in _BY_FIGURE:
            return run.bounds.get(measure.key)
        bound = run.bounds.get(measure.bound)
        if bound is not None and measure.key == "cold_share":
            return _share(bound, run.placed)
        return bound


def summarise(
    results: Sequence[RunResult], worlds: Sequence[WorldSetting], needs: Mapping[str, Mapping[str, Any]] | None = None
) -> Summary:
    """Raises KeyError where a policy lacks a seed in a world. needs: as Summary.needs."""
    policies = list(dict.fromkeys(result.policy for result in results))
    seeds = sorted({result.seed for result in results})
    by = {(tuple(result.setting.items()), result.policy, result.seed): result for result in results}
    runs = {
        (place, policy): [by[tuple(world.setting.items()), policy, seed] for seed in seeds]
        for place, world in enumerate(worlds)
        for policy in policies
    }
    return Summary(worlds, policies, seeds, runs, needs or {})


def value_of(world: WorldSetting, name: str) -> object:
    """An assumption's value in a world."""
    return getattr(world.assumptions, name)


_LENGTHS: Final = ("short", "mid", "long", "fast", "middle", "slow")


def _order(value: object) -> tuple[int, float, str]:
    if isinstance(value, str):
        return (0, _LENGTHS.index(value) if value in _LENGTHS else len(_LENGTHS), value)
    return (1, float(value) if isinstance(value, int | float) else 0.0, "")
