"""Tell how much each image is in demand, from the pods of users that run now and ran lately.

Owns the count of users by image; knows nothing of nodes, disks or pulls. A user is one pod. One that runs counts 1, one
that has ended counts 2^(-hours since it was seen to be gone / half-life): exact, so counting often or seldom gives the
same. What is running can be counted again at any time, so a new leader starts with all but those that have left.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost_core.placement.images import normalise_reference, split_reference
from roost_core.placement.labels import PULLED_LABEL_PREFIX
from roost_core.placement.nodes import NodeRules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from roost_core.placement.selectors import Requirement
    from roost_core.scheduler.objects import NodeTerm, PodSpec, PodState, Toleration

# Fewer users than this are none: the tables would never end.
LEAST_USERS: Final = 0.01
_DIGEST_ID: Final = re.compile(r".+@sha256:[0-9a-f]{64}", re.ASCII)


class Rules(NamedTuple):
    """Where pods may run: what `PodSpec` has of it, less what only says that an image must be there already."""

    node_selector: tuple[tuple[str, str], ...] = ()
    # None: no required node affinity.
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()

    def as_node_rules(self) -> NodeRules:
        """The same, for `roost_core.placement.nodes.node_admits`."""
        return NodeRules(
            dict(self.node_selector),
            None
            if self.terms is None
            else [
                {
                    "matchExpressions": [_expression(one) for one in term.expressions],
                    "matchFields": [_expression(one) for one in term.fields],
                }
                for term in self.terms
            ],
            [toleration._asdict() for toleration in self.tolerations],
        )


def _expression(requirement: Requirement) -> dict[str, Any]:
    return {"key": requirement.key, "operator": requirement.operator, "values": sorted(requirement.values)}


def rules_of(spec: PodSpec) -> Rules:
    """Where pods with this spec may run once the puller has done its work."""
    terms = spec.required_node_terms
    if terms is None or not any(_is_gate(one) for term in terms for one in term.expressions):
        return Rules(spec.node_selector, terms, spec.tolerations)
    open_terms = tuple(
        term._replace(expressions=tuple(one for one in term.expressions if not _is_gate(one))) for term in terms
    )
    if any(not (term.expressions or term.fields) for term in open_terms):
        # It asked for nothing but images, and terms are alternatives.
        return Rules(spec.node_selector, None, spec.tolerations)
    return Rules(spec.node_selector, open_terms, spec.tolerations)


def _is_gate(requirement: Requirement) -> bool:
    return requirement.key.startswith(PULLED_LABEL_PREFIX)


class Launch(NamedTuple):
    """What one pod says of images: alike for many pods, so they share one."""

    # Normalised references, each once, sorted.
    images: tuple[str, ...] = ()
    rules: Rules = Rules()
    # Beside each image: `repository@sha256:…` that the kubelet reported, "" when it reported none.
    digests: tuple[str, ...] = ()


# A pod of a class that isn't counted: it keeps its node from being empty, no more.
UNCOUNTED: Final = Launch()


class Use(NamedTuple):
    """An image, by pods that may run there."""

    image: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class Popularity:
    """What is remembered between counts."""

    # Seconds of the steady clock; None: nothing was counted yet.
    as_of: float | None = None
    # By uid. None: a pod without a class. Only pods that run.
    running: Mapping[str, Launch | None] = field(default_factory=dict)
    # The same, counted; those that count.
    launches: Mapping[Launch, int] = field(default_factory=dict)
    # Users that have left, as they weighed at `as_of`.
    gone: Mapping[Use, float] = field(default_factory=dict)
    # By image: what its tag meant to the most of the pods that ran last.
    digests: Mapping[str, str] = field(default_factory=dict)


def count_users(
    before: Popularity,
    pods: Iterable[PodState],
    launch_of: Callable[[PodState], Launch | None],
    half_life_seconds: float,
    steady: float,
) -> Popularity:
    """Count anew: arrivals, departures, and what time has taken from those that left before.

    launch_of: asked once for each pod that runs; None for pods of no class, UNCOUNTED for those of classes that don't
    count. `before` stays as it is; the order of `pods` means nothing.
    """
    # Launches that are alike become one object: identities are quick to count.
    alike: dict[Launch, Launch] = {launch: launch for launch in before.launches}
    running: dict[str, Launch | None] = {}
    known = before.running
    for pod in pods:
        if pod.phase != "Running" or pod.leaving:
            continue
        uid = pod.uid
        if uid in known:
            running[uid] = known[uid]
            continue
        launch = launch_of(pod)
        if launch is not None:
            launch = alike.setdefault(launch, launch)
        running[uid] = launch
    left = [launch for uid in known.keys() - running.keys() if (launch := known[uid]) is not None]
    # Whole numbers first: their sum is the same in any order.
    just_gone = _count_uses(Counter(left))
    gone = _decayed(before, half_life_seconds, steady)
    for use, pods_gone in just_gone.items():
        gone[use] = gone.get(use, 0.0) + pods_gone
    launches = _count_launches(running)
    in_use = set(map(itemgetter(0), gone)).union(*[launch.images for launch in launches])
    return Popularity(
        as_of=steady,
        running=running,
        launches=launches,
        gone=gone,
        digests=_digests(before, launches, in_use),
    )


def users_by_use(popularity: Popularity) -> dict[Use, float]:
    """Users of each image, by where their pods may run."""
    users = dict(popularity.gone)
    for use, pods in _count_uses(popularity.launches).items():
        users[use] = users.get(use, 0.0) + pods
    return users


def launch_from(pod: PodState) -> Launch:
    """What a pod says of images; its containers tell the digests where they are known."""
    found: dict[str, str] = {}
    for image in (*pod.spec.images, *pod.spec.volume_images):
        if image:
            found[normalise_reference(image)] = ""
    for container in pod.containers:
        reference = normalise_reference(container.image) if container.image else ""
        if reference in found and _DIGEST_ID.fullmatch(container.image_id):
            digest = normalise_reference(container.image_id)
            # A tag of one repository can't be pulled by the digest of another: that is a mirror's name, or a bare id.
            if split_reference(digest)[0] == split_reference(reference)[0]:
                found[reference] = digest
    images = tuple(sorted(found))
    return Launch(images, rules_of(pod.spec), tuple(found[image] for image in images))


def _count_launches(running: Mapping[str, Launch | None]) -> dict[Launch, int]:
    counts = Counter(map(id, running.values()))
    objects = {id(launch): launch for launch in running.values()}
    total: dict[Launch, int] = {}
    for identity, pods in counts.items():
        launch = objects[identity]
        if launch is not None and launch.images:
            total[launch] = total.get(launch, 0) + pods
    return total


def _count_uses(launches: Mapping[Launch, int]) -> dict[Use, int]:
    counts: dict[Use, int] = {}
    for launch, pods in launches.items():
        for image in launch.images:
            use = Use(image, launch.rules)
            counts[use] = counts.get(use, 0) + pods
    return counts


def _decayed(before: Popularity, half_life_seconds: float, steady: float) -> dict[Use, float]:
    if before.as_of is None:
        return {}
    factor = 2.0 ** (-max(0.0, steady - before.as_of) / half_life_seconds)
    return {use: left for use, weight in before.gone.items() if (left := weight * factor) >= LEAST_USERS}


def _digests(before: Popularity, launches: Mapping[Launch, int], in_use: set[str]) -> dict[str, str]:
    """One digest an image: that of most pods that run, else the one known before; "" when none is known."""
    votes: dict[str, dict[str, int]] = {}
    for launch, pods in launches.items():
        if not any(launch.digests):
            continue
        for image, digest in zip(launch.images, launch.digests, strict=True):
            if digest:
                by_digest = votes.setdefault(image, {})
                by_digest[digest] = by_digest.get(digest, 0) + pods
    # Few come and go from one count to the next.
    found = dict(before.digests)
    for image in found.keys() - in_use:
        del found[image]
    for image in in_use - found.keys():
        found[image] = ""
    for image, by_digest in votes.items():
        found[image] = max(by_digest, key=lambda digest: (by_digest[digest], digest))
    return found
