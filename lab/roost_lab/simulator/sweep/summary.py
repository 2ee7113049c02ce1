"""Sum up a sweep's results: each figure as median and range over seeds, its bound, and policies
compared by seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, NamedTuple

from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import show_assumption
from roost_lab.simulator.sweep.measures import BY_KEY, MEASURES, Measure


class Value(NamedTuple):
    """One figure over seeds."""

    median: float
    least: float
    greatest: float
    # In the order of Summary.seeds.
    each: tuple[float, ...]
    # Its bound's median; None: none is known.
    bound: float | None


class FigureChange(NamedTuple):
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
        """What it is called, for people."""
        changes = [f"{name}={show_assumption(value)}" for name, value in self.setting.items()]
        return ", ".join(changes) or "as usual"


@dataclass(frozen=True)
class Summary:
    """The results of a sweep by world and policy, each with every seed.

    Reports show the first world in full.
    """

    worlds: Sequence[WorldSetting]
    policies: Sequence[str]
    seeds: Sequence[int]
    # (place in worlds, policy) -> results in the order of seeds.
    runs: Mapping[tuple[int, str], Sequence[RunResult]]

    def value(self, key: str, policy: str, world: int = 0) -> Value | None:
        """One figure; None where it doesn't occur."""
        measure = BY_KEY[key]
        runs = self.runs[world, policy]
        read = [measure.read(run) for run in runs]
        amounts = [amount for amount in read if amount is not None]
        if not amounts:
            return None
        bounds = [run.bounds[measure.bound] for run in runs if measure.bound in run.bounds]
        return Value(
            median=median(amounts),
            least=min(amounts),
            greatest=max(amounts),
            each=tuple(amounts),
            bound=median(bounds) if bounds else None,
        )

    def change(self, key: str, policy: str, world: int = 0) -> FigureChange | None:
        """Against the first policy, which has the same launches, sizes and boots in each seed; None
        without amounts.
        """
        read = BY_KEY[key].read
        both = zip(self.runs[world, self.policies[0]], self.runs[world, policy], strict=True)
        pairs = [(read(first), read(run)) for first, run in both]
        shares = [amount / first - 1 for first, amount in pairs if first and amount is not None]
        return FigureChange(median(shares), min(shares), max(shares)) if shares else None

    def occurring(self) -> list[Measure]:
        """Figures that aren't zero under every policy."""
        return [measure for measure in MEASURES if self._occurs(measure.key)]

    def _occurs(self, key: str) -> bool:
        values = [self.value(key, policy) for policy in self.policies]
        return any(value is not None and value.greatest > 0 for value in values)

    def varied(self) -> dict[str, list[int]]:
        """Assumption that differs from the first world's -> places in worlds, the first among
        them.
        """
        first = asdict(self.worlds[0].assumptions)
        varied: dict[str, list[int]] = {}
        for place, world in enumerate(self.worlds):
            assumptions = asdict(world.assumptions)
            differing = [name for name in assumptions if assumptions[name] != first[name]]
            # Of a world that differs in several, none of these is the reason.
            if len(differing) == 1:
                varied.setdefault(differing[0], [0]).append(place)
        return varied


def summarise(results: Sequence[RunResult], worlds: Sequence[WorldSetting]) -> Summary:
    """Sum up a sweep's results. Raises KeyError where a policy lacks a seed in a world."""
    policies = list(dict.fromkeys(result.policy for result in results))
    seeds = sorted({result.seed for result in results})
    result_of = {
        (tuple(result.setting.items()), result.policy, result.seed): result for result in results
    }
    runs = {}
    for place, world in enumerate(worlds):
        setting = tuple(world.setting.items())
        for policy in policies:
            runs[place, policy] = [result_of[setting, policy, seed] for seed in seeds]
    return Summary(worlds, policies, seeds, runs)
