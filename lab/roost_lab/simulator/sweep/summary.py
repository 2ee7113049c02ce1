"""Sum up a sweep's results: figures over seeds with their bounds, and policies seed by seed."""

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
    # A value for each seed in which the figure occurs, in the order of Summary.seeds.
    by_seed: tuple[float, ...]
    # The median of the bounds of all seeds; None: none is known.
    bound: float | None


class FigureChange(NamedTuple):
    """How much more one figure of a policy is than the first policy's, over seeds.

    Each is a share of the first policy's figure in the same seed: -0.1 is 10 % less.
    """

    median: float
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class WorldSetting:
    """The assumptions of one world of the sweep."""

    # Assumption -> its value, of those that differ from the usual assumptions.
    setting: Mapping[str, Any]
    assumptions: Assumptions

    @property
    def name(self) -> str:
        """The world's name for people: what differs from the usual assumptions."""
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
        """One figure over seeds; None where it occurs in no seed.

        key: of a measure. world: its place in `worlds`.
        """
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
            by_seed=tuple(amounts),
            bound=median(bounds) if bounds else None,
        )

    def change(self, key: str, policy: str, world: int = 0) -> FigureChange | None:
        """How a figure changes against the first policy's; None where no seed tells.

        A seed gives all policies the same launches, sizes of images and boot times of nodes. It
        doesn't tell where the first policy's figure is 0.
        """
        read = BY_KEY[key].read
        first_runs = self.runs[world, self.policies[0]]
        changes = []
        for first_run, run in zip(first_runs, self.runs[world, policy], strict=True):
            first_amount = read(first_run)
            amount = read(run)
            if first_amount and amount is not None:
                changes.append(amount / first_amount - 1)
        if not changes:
            return None
        return FigureChange(median(changes), min(changes), max(changes))

    def occurring(self) -> list[Measure]:
        """The measures that are above 0 under some policy, in the first world."""
        return [measure for measure in MEASURES if self._occurs(measure.key)]

    def _occurs(self, key: str) -> bool:
        values = [self.value(key, policy) for policy in self.policies]
        return any(value is not None and value.greatest > 0 for value in values)

    def varied(self) -> dict[str, list[int]]:
        """Varied assumption -> the places in `worlds` of the worlds that differ in it alone.

        The first world, which has the assumption's base value, is the first of them.
        """
        first = asdict(self.worlds[0].assumptions)
        varied: dict[str, list[int]] = {}
        for place, world in enumerate(self.worlds):
            assumptions = asdict(world.assumptions)
            differing = [name for name in assumptions if assumptions[name] != first[name]]
            # A world that differs in several assumptions doesn't show what one of them changes.
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
