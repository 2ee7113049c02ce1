"""Estimate how long a wait still lasts, from how long such waits took before.

Durations are taken as log-normal. An image that was pulled before is expected to take as long
again; one that wasn't, as long as images of its registry do; and until anything is known, as long
as images of mybinder.org (lab/docs/simulator.md, assumptions). Each level lends the next one a few
made-up observations, so that the first true ones don't decide all.

A new leader learns from what the API server still holds: the last hour's Events of kubelets in the
release's namespace, which the image gate has watched anyway, and the users' pods that still run on
nodes that were started for them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final, NamedTuple

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.start_notices.settings import ROOM_SECONDS
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.placement.kubelet_pulls import read_pulled_message

# Nothing took less: starting a container alone takes as long.
_LEAST_SECONDS: Final = 0.5
# Share of waits that last longer than this one has already. Below it, nothing that was seen tells
# how long it lasts.
_LEAST_SHARE: Final = 0.02
# The most keys that are remembered; the one that was seen longest ago goes first.
MOST_KEYS: Final = 2000
# A duration counts half after so many later ones: registries and disks change.
_MEMORY: Final = 20.0
# Of the waits that a new leader finds, so many of each kind: an earlier one weighs a millionth.
MOST_EARLIER: Final = 400
# How much the downloads of one node take equally long: a slow registry or a slow disk is slow for
# all of them.
_CORRELATION: Final = 0.5
# Percentiles of a duration that an estimate names.
_LOW: Final = 0.1
_MEDIAN: Final = 0.5
_HIGH: Final = 0.9
_NORMAL: Final = NormalDist()


class Estimate(NamedTuple):
    """Seconds: four in five waits last between low and high."""

    low: float
    median: float
    high: float


class Spread(NamedTuple):
    """A log-normal duration in seconds: mean and variance of its natural logarithm."""

    mean: float
    variance: float

    def whole(self) -> Estimate:
        """How long it lasts from its beginning."""
        return self._beyond(0.0, 0.0)

    def left(self, passed: float) -> Estimate | None:
        """What is left after `passed` seconds; None if hardly any wait lasts that long."""
        if passed <= 0:
            return self._beyond(passed, 0.0)
        # Share of waits that are over by now.
        over = _NORMAL.cdf((math.log(passed) - self.mean) / math.sqrt(self.variance))
        return None if over > 1 - _LEAST_SHARE else self._beyond(passed, over)

    def _beyond(self, passed: float, over: float) -> Estimate:
        """What is left after `passed` seconds. over: the share of waits that are over by then."""
        deviation = math.sqrt(self.variance)

        def quantile(share: float) -> float:
            at = _NORMAL.inv_cdf(min(1 - 1e-9, max(1e-9, over + share * (1 - over))))
            return max(0.0, math.exp(self.mean + deviation * at) - passed)

        return Estimate(quantile(_LOW), quantile(_MEDIAN), quantile(_HIGH))


@dataclass(frozen=True, slots=True)
class SeenDurations:
    """The logarithms of what was seen under one key: their number (decayed), mean and squared
    deviations.
    """

    number: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def with_one(self, value: float) -> SeenDurations:
        """One more; earlier ones count a little less each time."""
        kept = 0.5 ** (1 / _MEMORY)
        number = self.number * kept + 1
        mean = self.mean + (value - self.mean) / number
        return SeenDurations(
            number, mean, self.squares * kept + (value - self.mean) * (value - mean)
        )


class Level(NamedTuple):
    """How much a level of the hierarchy trusts the one above it."""

    # As if so many durations had been seen whose mean is what the level above says.
    mean_weight: float
    # The same for their variance.
    variance_weight: float
    # The variance of the logarithm that is expected within one key of this level.
    variance: float


# Images of one registry: mybinder.org's have sizes whose logarithm has a standard deviation of 0.8.
OF_REGISTRY: Final = Level(1.0, 3.0, 0.8**2)
# All pulls: registries differ as the images of one of them do.
OF_ALL_PULLS: Final = OF_REGISTRY
# Pulls of one image on several nodes: shared layers, other pulls and slow disks make the
# difference.
OF_IMAGE: Final = Level(0.05, 1.0, 0.25**2)
# Nodes of one pool until a pod can use them.
OF_POOL: Final = Level(0.5, 3.0, 0.3**2)
# New nodes of all pools: taken to differ as those of one pool do.
OF_ALL_NODES: Final = OF_POOL
# A compressed image of 570 MB at 25 MB/s (lab/docs/simulator.md, assumptions).
A_PULL: Final = Spread(math.log(25.0), 0.8**2)
# Autoscalers and clouds: one and a half to six minutes.
A_NODE: Final = Spread(math.log(180.0), 0.5**2)


@dataclass(frozen=True, slots=True)
class PastWaits:
    """What durations were seen, by key; the key seen last is the last one."""

    by_key: Mapping[str, SeenDurations] = field(default_factory=dict)

    def with_duration(self, seconds: float, *keys: str) -> PastWaits:
        """One more duration, under each of the keys."""
        return self.with_durations([(seconds, keys)])

    def with_durations(self, durations: Iterable[tuple[float, Sequence[str]]]) -> PastWaits:
        """More of them, one after the other: seconds, and keys."""
        known = dict(self.by_key)
        for seconds, keys in durations:
            logarithm = math.log(max(_LEAST_SECONDS, seconds))
            for key in keys:
                # To the end.
                before = known.pop(key, SeenDurations())
                known[key] = before.with_one(logarithm)
            while len(known) > MOST_KEYS:
                del known[next(iter(known))]
        return PastWaits(known)

    def expect(self, prior: Spread, keys: Sequence[str], levels: Sequence[Level]) -> Spread:
        """What the next duration will be. keys: from the most general to the most special, each of
        one level.
        """
        spread = prior
        for key, level in zip(keys, levels, strict=True):
            past = self.by_key.get(key)
            if past is None:
                continue
            weight = level.mean_weight + past.number
            mean = (level.mean_weight * spread.mean + past.number * past.mean) / weight
            squares = level.variance_weight * level.variance + past.squares
            within = squares / (level.variance_weight + past.number)
            # The mean itself isn't known exactly.
            spread = Spread(mean, within * (1 + 1 / weight))
        return spread


def in_turn(first: Estimate, *rest: Spread) -> Estimate:
    """One after the other. Medians add up. So do the distances from them, as far as all waits are
    long or short together.
    """
    waits = [first, *(spread.whole() for spread in rest)]
    median = sum(wait.median for wait in waits)
    below = _together([wait.median - wait.low for wait in waits])
    return Estimate(
        max(0.0, median - below),
        median,
        median + _together([wait.high - wait.median for wait in waits]),
    )


def _together(distances: Sequence[float]) -> float:
    squares = sum(distance**2 for distance in distances)
    return math.sqrt((1 - _CORRELATION) * squares + _CORRELATION * sum(distances) ** 2)


# Kinds of what is learned: how long pulls take, and new nodes.
PULLS: Final = "pull"
NODES: Final = "node"
# Pulls that took less show that the image was there, unlisted. More isn't believed: others may
# write Events, too.
LEAST_PULL_SECONDS: Final = 2.0
_MOST_PULL_SECONDS: Final = 3600.0
# A node that is this much older than the wait wasn't requested for it.
_NODE_LEAD_SECONDS: Final = 60.0
_US: Final = 1e6


def keys_of_image(image: str) -> tuple[str, str, str]:
    """Keys of a normalised reference, from the most general to the most special."""
    return PULLS, f"{PULLS} {image.partition('/')[0]}", f"{PULLS} {image}"


def keys_of_pool(pod: Pod) -> tuple[str, str]:
    """Keys of the nodes that a pod may use, from the most general to the most special."""
    return NODES, f"{NODES} {pod.spec.node_selector}"


def pulls_left(images: Sequence[str], passed: float, past: PastWaits) -> Estimate | None:
    """How long pulls of these images last, one after the other; the first has lasted `passed`.

    images: normalised references. None: hardly any pull of the first one lasts so long.
    """
    first, *others = [_pull_of(image, past) for image in images]
    left = first.left(passed)
    return None if left is None else in_turn(left, *others)


def _pull_of(image: str, past: PastWaits) -> Spread:
    return past.expect(A_PULL, keys_of_image(image), (OF_ALL_PULLS, OF_REGISTRY, OF_IMAGE))


def new_node_for(pod: Pod, past: PastWaits) -> Estimate | None:
    """How long a new node takes until the pod can use it; None: no node was seen to start."""
    keys = keys_of_pool(pod)
    if keys[0] not in past.by_key:
        return None
    return past.expect(A_NODE, keys, (OF_ALL_NODES, OF_POOL)).whole()


def is_new_for(node: Node, waits_since: float) -> bool:
    """Whether the node may have been started for who waits since then, in Unix time."""
    return node.created > waits_since - _NODE_LEAD_SECONDS


def earlier_waits(snapshot: Snapshot, is_user: Callable[[Pod], bool]) -> PastWaits:
    """What waits took before this replica led. is_user: whether a pod is a user's."""
    waits = sorted([*_pulls(snapshot), *_waits_for_nodes(snapshot, is_user)])
    return PastWaits().with_durations((wait.seconds, wait.keys) for wait in newest_waits(waits))


class EndedWait(NamedTuple):
    """A wait that is over. Sorted: the one that ended first comes first."""

    # Unix time.
    ended_at: float
    seconds: float
    # As of PastWaits.
    keys: tuple[str, ...]


def newest_waits(waits: Sequence[EndedWait]) -> list[EndedWait]:
    """The last waits of each kind, in the same order: what came before them hardly counts."""
    kept: list[EndedWait] = []
    counts: Counter[tuple[str, ...]] = Counter()
    for wait in reversed(waits):
        if counts[wait.keys] < MOST_EARLIER:
            counts[wait.keys] += 1
            kept.append(wait)
    kept.reverse()
    return kept


def _pulls(snapshot: Snapshot) -> Iterator[EndedWait]:
    for event in snapshot.pull_events.values():
        pull = read_pulled_message(event.message)
        # Without the wait for the kubelet's other pulls.
        took_us = (pull and pull.pull_us) or 0
        if LEAST_PULL_SECONDS * _US <= took_us <= _MOST_PULL_SECONDS * _US:
            keys = keys_of_image(normalise_reference(event.image))
            yield EndedWait(event.at, took_us / _US, keys)


def _waits_for_nodes(snapshot: Snapshot, is_user: Callable[[Pod], bool]) -> Iterator[EndedWait]:
    for pod in snapshot.pods.values():
        node = snapshot.nodes.get(pod.node_name)
        # A kubelet accepts a pod within a second of its binding.
        if node is None or pod.started is None or not is_new_for(node, pod.created):
            continue
        seconds = pod.started - pod.created
        # Most pods started soon: whose they are needn't be asked.
        if seconds >= ROOM_SECONDS and is_user(pod):
            yield EndedWait(pod.started, seconds, keys_of_pool(pod))
