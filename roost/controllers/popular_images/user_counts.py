"""Count the users of each image, from users' pods that run now or ran lately.

A user is one pod. One that runs counts 1; one that has ended counts 2^(-time since then /
half-life). The decay is exact, so how often users are counted changes nothing. A new leader lacks
only those that have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from roost_core.objects.image_references import normalise_reference
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.selectors import NodeRules

# Fewer users than this count as none, so that tables stay small.
LEAST_USERS: Final = 0.01
# The most node rules that are kept of one image. Pods of one pool have the same. More come from
# users' own selectors, and would be slow.
MOST_RULES: Final = 8


@dataclass(frozen=True, slots=True)
class ImageDemand:
    """What is remembered from one count to the next."""

    # Steady seconds; None: nothing was counted yet.
    as_of: float | None = None
    # Running pods' specs, by uid; None: the pod isn't a user's.
    running: Mapping[str, PodSpec | None] = field(default_factory=dict)
    # Users by image: of running pods, and of those that have ended, decayed.
    users: Mapping[str, float] = field(default_factory=dict)
    gone: Mapping[str, float] = field(default_factory=dict)
    # By image: where its pods may run.
    rules: Mapping[str, frozenset[NodeRules]] = field(default_factory=dict)

    def most_used(self, least: float) -> Sequence[tuple[str, float]]:
        """Images with at least so many users, the most used first."""
        used = ((image, users) for image, users in self.users.items() if users >= least)
        return sorted(used, key=lambda item: (-item[1], item[0]))


def count_users(
    before: ImageDemand,
    pods: Iterable[Pod],
    is_users: Callable[[Pod], bool],
    half_life_seconds: float,
    steady: float,
) -> tuple[ImageDemand, list[Pod]]:
    """Return the next count, and the users' pods that run since the last one.

    The order of `pods` doesn't matter.
    """
    running: dict[str, PodSpec | None] = {}
    started: list[Pod] = []
    for pod in pods:
        if pod.phase != "Running" or pod.leaving:
            continue
        if pod.uid in before.running:
            running[pod.uid] = before.running[pod.uid]
        elif is_users(pod):
            running[pod.uid] = pod.spec
            started.append(pod)
        else:
            running[pod.uid] = None
    ended = [before.running[uid] for uid in before.running.keys() - running.keys()]
    gone = _decayed(before, half_life_seconds, steady)
    for image, count in _count_images(ended).items():
        gone[image] = gone.get(image, 0.0) + count
    counted = _count_images(running.values())
    users = {
        image: counted.get(image, 0) + gone.get(image, 0.0)
        for image in counted.keys() | gone.keys()
    }
    kept_rules = {image: before.rules.get(image, frozenset()) for image in gone}
    rules = _with_rules_of(running.values(), kept_rules)
    return ImageDemand(steady, running, users, gone, rules), started


def _decayed(before: ImageDemand, half_life_seconds: float, steady: float) -> dict[str, float]:
    """What the users of pods that had ended before the last count are worth now, by image."""
    if before.as_of is None:
        return {}
    factor = 2.0 ** (-max(0.0, steady - before.as_of) / half_life_seconds)
    decayed = {image: users * factor for image, users in before.gone.items()}
    return {image: users for image, users in decayed.items() if users >= LEAST_USERS}


def _with_rules_of(
    specs: Iterable[PodSpec | None], kept: Mapping[str, frozenset[NodeRules]]
) -> dict[str, frozenset[NodeRules]]:
    """Where the pods of each image may run, by these specs and by what is kept; MOST_RULES at
    most.
    """
    rules = {image: set(of_image) for image, of_image in kept.items()}
    for spec in _distinct(specs):
        where = NodeRules(spec.node_selector, spec.required_node_terms, spec.tolerations)
        for image in images_of(spec):
            rules.setdefault(image, set()).add(where)
    bounded: dict[str, frozenset[NodeRules]] = {}
    for image, of_image in rules.items():
        # Sorted, so that each leader keeps the same ones.
        is_many = len(of_image) > MOST_RULES
        bounded[image] = frozenset(sorted(of_image, key=repr)[:MOST_RULES] if is_many else of_image)
    return bounded


@lru_cache(maxsize=4096)
def images_of(spec: PodSpec) -> tuple[str, ...]:
    """A pod's images, normalised."""
    return tuple(
        sorted(
            {normalise_reference(image) for image in (*spec.images, *spec.volume_images) if image}
        )
    )


def _count_images(specs: Collection[PodSpec | None]) -> Counter[str]:
    """How many of these specs name each image. None: no user's, and not counted."""
    # Integers: their sum doesn't depend on the order.
    counts: Counter[str] = Counter()
    # Most pods share few specs, each one object: an image's name is read once for all of them.
    pods_by_spec = Counter(id(spec) for spec in specs)
    for spec in _distinct(specs):
        for image in images_of(spec):
            counts[image] += pods_by_spec[id(spec)]
    return counts


def _distinct(specs: Iterable[PodSpec | None]) -> Iterable[PodSpec]:
    """Each spec once. Most pods share few specs, each one object, so comparing objects is enough
    and fast.
    """
    return {id(spec): spec for spec in specs if spec is not None}.values()
