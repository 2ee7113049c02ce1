"""Count the users of each image, from users' pods that run now or ran recently.

A user is one pod. One that runs counts 1; one that has ended counts 2^(-time since then / half-life). The decay is
exact, so the result doesn't depend on how often users are counted. Running pods can be counted anew at any time, so a
new leader lacks only those that have ended.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.images import normalise_reference, split_reference
from roost_core.objects.selectors import NodeRules
from roost_core.placement.labels import PULLED_LABEL_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from roost_core.objects.pod import Pod, PodSpec
    from roost_core.objects.selectors import Requirement

# Fewer users than this count as none, so that tables stay small.
LEAST_USERS: Final = 0.01
_DIGEST_ID: Final = re.compile(r".+@sha256:[0-9a-f]{64}", re.ASCII)


def rules_of(spec: PodSpec) -> NodeRules:
    """Return where pods with this spec may run once their images are present."""
    terms = spec.required_node_terms
    if terms is None or not any(_is_gate(requirement) for term in terms for requirement in term.expressions):
        return NodeRules(spec.node_selector, terms, spec.tolerations)
    open_terms = tuple(
        term._replace(expressions=tuple(requirement for requirement in term.expressions if not _is_gate(requirement)))
        for term in terms
    )
    if any(not (term.expressions or term.fields) for term in open_terms):
        # It required nothing but images, and terms are ORed.
        return NodeRules(spec.node_selector, None, spec.tolerations)
    return NodeRules(spec.node_selector, open_terms, spec.tolerations)


def _is_gate(requirement: Requirement) -> bool:
    return requirement.key.startswith(PULLED_LABEL_PREFIX)


class Launch(NamedTuple):
    """A pod's images and rules. Many pods have equal ones, and share one object."""

    # Normalised references, unique and sorted.
    images: tuple[str, ...] = ()
    rules: NodeRules = NodeRules()
    # For each image: `repository@sha256:…` as reported by the kubelet, "" if it reported none.
    digests: tuple[str, ...] = ()


# A pod of a class that isn't counted: it only keeps its node from being empty.
UNCOUNTED: Final = Launch()


class Use(NamedTuple):
    """An image, and where the pods that use it may run."""

    image: str
    rules: NodeRules


@dataclass(frozen=True, slots=True)
class Popularity:
    """What is remembered from one count to the next."""

    # Steady seconds; None: nothing was counted yet.
    as_of: float | None = None
    # Running pods, by uid. None: a pod without a class.
    running: Mapping[str, Launch | None] = field(default_factory=dict)
    # How many running pods have each launch, without uncounted ones.
    launches: Mapping[Launch, int] = field(default_factory=dict)
    # Users that have left, decayed as of `as_of`.
    gone: Mapping[Use, float] = field(default_factory=dict)
    # By image: the digest that most running pods have of it.
    digests: Mapping[str, str] = field(default_factory=dict)


def count_users(
    before: Popularity,
    pods: Iterable[Pod],
    launch_of: Callable[[Pod], Launch | None],
    half_life_seconds: float,
    steady: float,
) -> Popularity:
    """Return the next count: pods that started or ended since, and the decay of those that ended earlier.

    launch_of: called once for each running pod; returns None for one without a class, UNCOUNTED for one of a class that
    isn't counted. `before` isn't changed; the order of `pods` doesn't matter.
    """
    # Equal launches become one object, because counting by identity is fast.
    alike: dict[Launch, Launch] = {launch: launch for launch in before.launches}
    running: dict[str, Launch | None] = {}
    was_running = before.running
    for pod in pods:
        if pod.phase != "Running" or pod.leaving:
            continue
        uid = pod.uid
        if uid in was_running:
            running[uid] = was_running[uid]
            continue
        launch = launch_of(pod)
        if launch is not None:
            launch = alike.setdefault(launch, launch)
        running[uid] = launch
    ended = [launch for uid in was_running.keys() - running.keys() if (launch := was_running[uid]) is not None]
    # Integers first: their sum doesn't depend on the order.
    just_gone = _count_uses(Counter(ended))
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
    """Return the users of each image, by where their pods may run."""
    users = dict(popularity.gone)
    for use, pods in _count_uses(popularity.launches).items():
        users[use] = users.get(use, 0.0) + pods
    return users


def launch_from(pod: Pod) -> Launch:
    """Read a pod's images and rules; its containers' statuses have the digests, if known."""
    digests: dict[str, str] = {}
    for image in (*pod.spec.images, *pod.spec.volume_images):
        if image:
            digests[normalise_reference(image)] = ""
    for container in pod.containers:
        reference = normalise_reference(container.image) if container.image else ""
        if reference in digests and _DIGEST_ID.fullmatch(container.image_id):
            digest = normalise_reference(container.image_id)
            # The digest of another repository (a mirror's, or a bare id) can't replace the tag in a pull.
            if split_reference(digest)[0] == split_reference(reference)[0]:
                digests[reference] = digest
    images = tuple(sorted(digests))
    return Launch(images, rules_of(pod.spec), tuple(digests[image] for image in images))


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
    return {use: users for use, weight in before.gone.items() if (users := weight * factor) >= LEAST_USERS}


def _digests(before: Popularity, launches: Mapping[Launch, int], in_use: set[str]) -> dict[str, str]:
    """Return each image's digest: that of most running pods, else the last known one; "" if none is known."""
    votes: dict[str, dict[str, int]] = {}
    for launch, pods in launches.items():
        if not any(launch.digests):
            continue
        for image, digest in zip(launch.images, launch.digests, strict=True):
            if digest:
                by_digest = votes.setdefault(image, {})
                by_digest[digest] = by_digest.get(digest, 0) + pods
    # Few images change from one count to the next.
    digests = dict(before.digests)
    for image in digests.keys() - in_use:
        del digests[image]
    for image in in_use - digests.keys():
        digests[image] = ""
    for image, by_digest in votes.items():
        digests[image] = max(by_digest, key=lambda digest: (by_digest[digest], digest))
    return digests
