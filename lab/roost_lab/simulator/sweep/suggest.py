"""Search values, machines and the autoscaler's settings for a wait that is short enough at the least cost.

The cost is node-hours, or money where nodes have a price.

Coordinate descent over small grids: one axis at a time, all its values with the same seeds (so that differences are the
values'), until a round changes nothing or the budget is spent; then the best few with more seeds. The final choice is
among the candidates that were replayed with every seed.

Of a long trace the descent replays windows only (roost_lab/simulator/sweep/windows.py). What they say of a candidate is
corrected by another one's figures of the whole trace, and only ranks it; the best few are replayed on the whole trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from generator.values.merge import Settings
from roost_lab.pages.phrases import show_seconds
from roost_lab.simulator.sweep.measure_registry import BY_KEY
from roost_lab.simulator.sweep.suggest_world import machine_names, where_to_set, world_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from roost_lab.simulator.engine.results import RunResult
    from roost_lab.simulator.setup.assumptions import Assumptions

# The most candidates that are tried, and the most rounds over all axes.
MOST_CANDIDATES: Final = 60
MOST_ROUNDS: Final = 4
# Seeds of the search, and candidates that get all of them.
FEW_SEEDS: Final = 2
FINALISTS: Final = 4
# Candidates that are replayed on all of a long trace, beside the first.
CONFIRMED: Final = 3
# Shares of the waits in windows that may stand for TARGET_SHARE of all waits.
SHARES: Final = (0.5, 0.99)
TARGET_SHARE: Final = 0.95
STRATEGY: Final = "suggested"
# From "only breaks ties" to "decides before all others", for scores of 0 to 100.
WEIGHTS: Final = (1, 11, 101, 1331, 10201)
WEIGHED: Final = ("NodeResourcesFit", "ImageLocality", "InterPodAffinity")
PLACEHOLDERS: Final = "placeholders"
WARM_SPARE: Final = "warm set's spare, % of a node"
# No warm set.
NO_WARM: Final = -1000
SPARE_PERCENTS: Final = (NO_WARM, -100, -50, -25, 0)
# Shares of the most launches that come while a node boots (but for one window in a thousand).
PLACEHOLDER_SHARES: Final = (0.0, 0.25, 0.5, 1.0, 1.5)

# kube-scheduler's own weights.
_DEFAULTS: Final = {
    "NodeAffinity": 2,
    "TaintToleration": 3,
    "InterPodAffinity": 2,
    "PodTopologySpread": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}

USERS: Final = "user"
_OFF: Final = (WARM_SPARE, NO_WARM)

# Axis -> value.
Candidate = tuple[tuple[str, int], ...]


class SuggestError(Exception):
    """These values leave nothing to search; the text says why."""


class Score(NamedTuple):
    """What a candidate achieves: medians over its seeds."""

    wait_seconds: float
    node_hours: float
    cold: float
    seeds: int
    # None: nodes have no price.
    cost: float | None = None


class Axis(NamedTuple):
    """One number that is searched, and the values that are tried, ascending."""

    name: str
    values: tuple[int, ...]


@dataclass(slots=True)
class Outcome:
    """What the search found."""

    best: Candidate
    # Every candidate that was tried on the whole trace.
    scores: dict[Candidate, Score] = field(default_factory=dict)
    start: Candidate = ()
    # How many were ranked on windows of the trace; 0: all were tried on the whole trace.
    ranked_on_windows: int = 0

    def reaches(self, target_seconds: float) -> bool:
        """Whether the best candidate is good enough."""
        return self.scores[self.best].wait_seconds <= target_seconds

    def ranked(self, target_seconds: float) -> list[Candidate]:
        """From the best to the worst; of equal ones the one that changes the least comes first."""
        return sorted(self.scores, key=lambda candidate: self.key(candidate, target_seconds))

    def key(self, candidate: Candidate, target_seconds: float) -> tuple[tuple[float, float, float], int, Candidate]:
        """What candidates are ranked by, lower is better."""
        changed = sum(axis not in self.start for axis in candidate)
        return rank(self.scores[candidate], target_seconds), changed, candidate


def rank(score: Score, target_seconds: float) -> tuple[float, float, float]:
    """Lower is better: first the seconds beyond the target, then costs or else node-hours, then cold starts."""
    cost = score.node_hours if score.cost is None else score.cost
    return (max(0.0, score.wait_seconds - target_seconds), cost, score.cold)


def score_of(runs: Sequence[RunResult]) -> Score:
    """The score of one candidate, from its replays."""
    waits = [run.waits["total"].quantile(TARGET_SHARE) for run in runs]
    costs = [cost for cost in map(BY_KEY["cost"].read, runs) if cost is not None]
    hours, cold = median(run.node_hours for run in runs), median(run.cold for run in runs)
    # Without prices every candidate would cost nothing.
    return Score(median(waits), hours, cold, len(runs), median(costs) if any(costs) else None)


def search(
    axes: Sequence[Axis],
    start: Candidate,
    evaluate: Callable[[Sequence[Candidate], int], Sequence[Score]],
    target_seconds: float,
    seeds: int,
) -> Outcome:
    """The best candidate. evaluate: candidates and a number of seeds -> a score each; `start` is always tried."""
    few = min(FEW_SEEDS, seeds)
    scores: dict[Candidate, Score] = {}

    def try_all(candidates: Iterable[Candidate], number: int) -> None:
        new = [
            candidate
            for candidate in dict.fromkeys(candidates)
            if candidate not in scores or scores[candidate].seeds < number
        ]
        scores.update(zip(new, evaluate(new, number), strict=True) if new else ())

    def best_of(candidates: Iterable[Candidate]) -> Candidate:
        outcome = Outcome(start, scores, start)
        return min(candidates, key=lambda candidate: outcome.key(candidate, target_seconds))

    at = _descend(axes, start, scores, lambda candidates: try_all(candidates, few), best_of)
    ranked = Outcome(at, scores, start).ranked(target_seconds)
    finalists = list(dict.fromkeys([*ranked[:FINALISTS], start]))
    try_all(finalists, seeds)
    return Outcome(best_of(finalists), scores, start)


def search_on_windows(
    axes: Sequence[Axis],
    start: Candidate,
    evaluate: Callable[[Sequence[Candidate], int], Sequence[Score]],
    replay: Callable[[Sequence[Candidate]], Sequence[RunResult]],
    *,
    target_seconds: float,
    seeds: int,
) -> Outcome:
    """As `search`, but only the best few are evaluated. replay: candidates -> what each gives in the windows."""
    (first,) = evaluate([start], seeds)
    runs: dict[Candidate, RunResult] = {}
    ranks: dict[Candidate, Score] = {}

    def try_all(candidates: Iterable[Candidate]) -> None:
        new = [candidate for candidate in dict.fromkeys(candidates) if candidate not in runs]
        runs.update(zip(new, replay(new), strict=True) if new else ())
        ranks.update((candidate, predict(runs[candidate], runs[start], first)) for candidate in new)

    def best_of(candidates: Iterable[Candidate]) -> Candidate:
        outcome = Outcome(start, ranks, start)
        return min(candidates, key=lambda candidate: outcome.key(candidate, target_seconds))

    _descend(axes, start, ranks, try_all, best_of)
    return confirm(runs, start, first, lambda candidate: evaluate([candidate], seeds)[0], target_seconds)


def confirm(
    runs: Mapping[Candidate, RunResult],
    start: Candidate,
    first: Score,
    evaluate: Callable[[Candidate], Score],
    target_seconds: float,
) -> Outcome:
    """Evaluate the best few of the candidates that were replayed in windows (runs), one by one; the best of these.

    first: the score of `start`. Each candidate that is evaluated corrects what the windows say of the others.
    """
    scores = {start: first}
    known = start

    def best_of(candidates: Iterable[Candidate], of: dict[Candidate, Score]) -> Candidate:
        outcome = Outcome(start, of, start)
        return min(candidates, key=lambda candidate: outcome.key(candidate, target_seconds))

    for _ in range(CONFIRMED):
        # Weights often change nothing: what did the same in the windows as one that is known needn't be tried.
        seen = {score_of([runs[candidate]]) for candidate in scores}
        others = [candidate for candidate, run in runs.items() if score_of([run]) not in seen]
        if not others:
            break
        predicted = {candidate: predict(runs[candidate], runs[known], scores[known]) for candidate in others}
        known = best_of(others, predicted)
        scores[known] = evaluate(known)
    return Outcome(best_of(scores, scores), scores, start, len(runs))


def _descend(
    axes: Sequence[Axis],
    start: Candidate,
    scores: Mapping[Candidate, Score],
    try_all: Callable[[Iterable[Candidate]], None],
    best_of: Callable[[Iterable[Candidate]], Candidate],
) -> Candidate:
    """Where the coordinate descent ends. try_all: adds the candidates' scores to `scores`."""
    try_all([start])
    at = start
    for _ in range(MOST_ROUNDS):
        before = at
        for axis in axes:
            line = [_moved(at, axis.name, value) for value in axis.values]
            budget = MOST_CANDIDATES - len(scores)
            try_all([candidate for candidate in line if candidate not in scores][:budget])
            at = best_of([at, *(candidate for candidate in line if candidate in scores)])
        if at == before or len(scores) >= MOST_CANDIDATES:
            break
    return at


def predict(run: RunResult, known_run: RunResult, known: Score) -> Score:
    """What a candidate would give on the whole trace, from its windows (run) and from a known candidate.

    Windows have other shares of cold starts than the trace. So the wait is compared at that share of the windows' waits
    at which the known candidate waits as long as 95 of 100 do under it on the whole trace. All else is in proportion.
    """
    waits, known_waits = run.waits["total"], known_run.waits["total"]
    share = min(max(known_waits.share_within(known.wait_seconds), SHARES[0]), SHARES[1])
    score, known_score = score_of([run]), score_of([known_run])
    cost = None
    if known.cost is not None:
        cost = _in_proportion(score.cost or 0.0, known_score.cost or 0.0, known.cost)
    return Score(
        _in_proportion(waits.quantile(share), known_waits.quantile(share), known.wait_seconds),
        _in_proportion(score.node_hours, known_score.node_hours, known.node_hours),
        _in_proportion(score.cold, known_score.cold, known.cold),
        0,
        cost,
    )


def _in_proportion(amount: float, known_amount: float, known: float) -> float:
    return amount * known / known_amount if known_amount else amount


def _moved(candidate: Candidate, name: str, value: int) -> Candidate:
    return tuple((axis, value if axis == name else old) for axis, old in candidate)


@dataclass(frozen=True, slots=True)
class Space:
    """What can be searched in one values file: its axes, where it stands now, and how a candidate is written."""

    axes: tuple[Axis, ...]
    start: Candidate
    # Pod classes that share the users' profile; they get the searched one.
    classes: tuple[str, ...]
    # The other keys of the users' warm set, where it is searched.
    warm: Mapping[str, Any]
    # The strategy of that profile, which the searched weights go into.
    table: Mapping[str, Any]
    placeholders: Sequence[Mapping[str, Any]]
    # The world whose machines and autoscaler are searched; None: they stay as they are.
    world: Assumptions | None = None

    def values_of(self, candidate: Candidate) -> dict[str, Any]:
        """Values to paste over the searched ones."""
        chosen = dict(candidate)
        weights = {**self.table["weights"], **{name: chosen[name] for name in WEIGHED}}
        # A new profile: the old one may have plugins, which override a strategy.
        made: dict[str, Any] = {
            "scheduler": {
                "strategies": {STRATEGY: {**self.table, "weights": weights}},
                "profiles": {STRATEGY: {"strategy": STRATEGY}},
            },
            "podClasses": {name: {"profile": STRATEGY} for name in self.classes},
        }
        if WARM_SPARE in chosen:
            spare = chosen[WARM_SPARE]
            made["podClasses"][USERS]["warm"] = None if spare == NO_WARM else {**self.warm, "spare": f"{spare}%"}
        if PLACEHOLDERS in chosen:
            first, *others = self.placeholders
            made[PLACEHOLDERS] = [{**first, "replicas": chosen[PLACEHOLDERS]}, *others]
        return made

    def settings_of(self, candidate: Candidate, dump: Callable[[object], str]) -> Settings:
        """The same as Helm's --set-json, which replaces what it names: so only leaves and whole lists."""
        values = self.values_of(candidate)
        named = {
            f"scheduler.strategies.{STRATEGY}": values["scheduler"]["strategies"][STRATEGY],
            f"scheduler.profiles.{STRATEGY}": values["scheduler"]["profiles"][STRATEGY],
            **{"podClasses." + name.replace(".", "\\.") + ".profile": STRATEGY for name in self.classes},
        }
        if WARM_SPARE in dict(candidate):
            named[f"podClasses.{USERS}.warm"] = values["podClasses"][USERS]["warm"]
        if PLACEHOLDERS in values:
            named[PLACEHOLDERS] = values[PLACEHOLDERS]
        return Settings(json_values=[f"{key}={dump(value)}" for key, value in named.items()])


def make_space(
    values: Mapping[str, Any], launches: int, user_requests: Mapping[str, str], world: Assumptions | None = None
) -> Space:
    """values: with the defaults. launches: the most that come while a node boots. Raises SuggestError.

    user_requests: what a placeholder requests where the values have none. world: as Space.world.
    """
    profile = values["podClasses"].get(USERS, {}).get("profile")
    if values["scheduler"]["target"] != "deploy" or not profile:
        raise SuggestError(
            "podClasses.user.profile: users have no scheduler profile of Roost's, so there are no weights to search; "
            "expected scheduler.target: deploy and a profile"
        )
    table = _table(values["scheduler"]["strategies"], values["scheduler"]["profiles"][profile])
    usual = {"name": "default", "replicas": 0, "resources": {"requests": dict(user_requests)}}
    sets = values.get(PLACEHOLDERS) or [usual]
    start: list[tuple[str, int]] = [(name, int(table["weights"].get(name, 1))) for name in WEIGHED]
    axes = [Axis(name, tuple(sorted({*WEIGHTS, int(table["weights"].get(name, 1))}))) for name in WEIGHED]
    # Where a set is counted by nodes or by the clock, its replicas are no number of pods to choose.
    if sets[0].get("countBy", "pods") == "pods" and not sets[0].get("windows"):
        now = int(sets[0].get("replicas", 0))
        axes.insert(
            0, Axis(PLACEHOLDERS, tuple(sorted({now, *(round(launches * share) for share in PLACEHOLDER_SHARES)})))
        )
        start.insert(0, (PLACEHOLDERS, now))
    warm = values["podClasses"][USERS].get("warm") or {}
    percent = _spare_percent(values, warm)
    if percent is not None:
        axes.insert(0, Axis(WARM_SPARE, tuple(sorted({percent, *SPARE_PERCENTS}))))
        start.insert(0, (WARM_SPARE, percent))
    beside = [] if world is None else world_axes(world)
    axes = [*(Axis(axis.name, axis.values) for axis in beside), *axes]
    start = [*((axis.name, axis.now) for axis in beside), *start]
    classes = tuple(name for name, settings in values["podClasses"].items() if settings.get("profile") == profile)
    return Space(tuple(axes), tuple(start), classes, warm, table, sets, world)


def _spare_percent(values: Mapping[str, Any], warm: Mapping[str, Any]) -> int | None:
    """The warm set's spare; None where there can be no warm set, or its spare isn't a share of a node."""
    users, spare = values["podClasses"][USERS], warm.get("spare", 0)
    is_possible = values["admission"]["mode"] == "webhook" and values["webhook"]["readNodes"] and not users.get("home")
    if not is_possible or (spare and not isinstance(spare, str)):
        return None
    return int(str(spare).removesuffix("%")) if warm else NO_WARM


def _table(strategies: Mapping[str, Mapping[str, Any]], profile: Mapping[str, Any]) -> Mapping[str, Any]:
    """A profile as a strategy: the one that it names, or what its own plugins amount to."""
    named = strategies.get(profile.get("strategy") or "", strategies["pack"])
    if not profile.get("plugins"):
        return named
    plugins = profile["plugins"].get("score") or {}
    disabled = [plugin["name"] for plugin in plugins.get("disabled") or ()]
    defaults = {} if "*" in disabled else {name: weight for name, weight in _DEFAULTS.items() if name not in disabled}
    enabled = {plugin["name"]: plugin.get("weight") or 1 for plugin in plugins.get("enabled") or ()}
    weights = defaults | enabled
    fits = [
        config["args"]["scoringStrategy"]
        for config in profile.get("pluginConfig") or ()
        if config["name"] == "NodeResourcesFit" and "scoringStrategy" in (config.get("args") or {})
    ]
    return {
        "weights": {name: weights[name] for name in _DEFAULTS if name in weights},
        "disabled": [name for name in _DEFAULTS if name not in weights],
        "fit": fits[0] if fits else {"type": "LeastAllocated", "resources": named["fit"]["resources"]},
    }


def describe_candidate(candidate: Candidate, world: Assumptions | None = None) -> str:
    """A candidate for people. world: as Space.world."""
    types = {} if world is None else machine_names(world)

    def show(name: str, value: int) -> str:
        return "off" if (name, value) == _OFF else types.get((name, value), str(value))

    return ", ".join(f"{name} {show(name, value)}" for name, value in candidate)


def show_score(score: Score) -> str:
    """A score for people."""
    wait = show_seconds(score.wait_seconds)
    cost = "" if score.cost is None else f"cost {score.cost:,.1f}, "
    return f"p95 wait {wait}, {cost}{score.node_hours:,.1f} node-hours, {score.cold:,.0f} cold starts"


def show_outcome(outcome: Outcome, space: Space, target_seconds: float, trace: str, windows: str = "") -> str:
    """Values to paste, with the expected result, and what to set elsewhere, as comments above them.

    windows: what candidates were ranked on, for people.
    """
    best, start = outcome.scores[outcome.best], outcome.scores[outcome.start]
    seeds = f"{best.seeds} seed{'' if best.seeds == 1 else 's'}"
    least = "node-hours" if best.cost is None else "cost"
    lines = [
        f"# For a p95 wait of at most {show_seconds(target_seconds)} at the least {least}; medians over {seeds}.",
        f"# Launches: {trace}.",
        f"# These: {show_score(best)}.",
        f"# Before: {show_score(start)} ({describe_candidate(outcome.start, space.world)}).",
        f"# Tried: {len(outcome.scores)}."
        if not windows
        else f"# Ranked on {windows}: {outcome.ranked_on_windows}. Tried on the whole trace: {len(outcome.scores)}.",
    ]
    if outcome.best == outcome.start:
        lines.append("# Nothing that was tried is better than what you have.")
    if space.world is not None:
        said = where_to_set(space.world, dict(outcome.best), dict(outcome.start))
        lines += [f"# Set beside these values: {sentence}" for sentence in said]
    text = yaml.safe_dump(space.values_of(outcome.best), sort_keys=False, width=120)
    return "\n".join(lines) + "\n" + text
