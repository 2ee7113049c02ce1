"""Read the placeholder mover's settings from release.json and the scheduler's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from roost.controllers.contract.release import ReleaseDocument
from roost_core.objects.pod import Pod
from roost_core.placement.labels import attract_prefix, startup_taint
from roost_core.release.image_gate import Puller
from roost_core.release.placeholder_sets import PlaceholderSet
from roost_core.release.pod_classes import TIE_BREAK, PodClass
from roost_core.scheduler.plugins import OLDEST_MINOR
from roost_core.scheduler.profile import Profile, ProfileError, default_profile, read_each_profile

# Times that the values don't have: nobody has a reason to change them. Tests set them.
_SECONDS: Final[Mapping[str, int]] = {
    # How long a node must have been ready, with its images, before it is marked.
    "markAfterSeconds": 30,
    # The least time before another node may get the mark.
    "keepMarkSeconds": 300,
    # After a node stopped being ready, nothing moves from or to it for this long.
    "flapSeconds": 300,
    # After an eviction that was refused or mispredicted; doubled each time, up to the maximum.
    "backOffSeconds": 60,
    "maxBackOffSeconds": 900,
}
_KEYS: Final = ("enabled", "evictionsPerMinute", *_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoverSettings:
    """`placeholderMover`, and what else its plan needs of the release.

    Without sets, it only removes marks.
    """

    # The prefix of all marks of this release.
    label_prefix: str
    # Over all sets and nodes; 0: mark nodes, move nothing.
    evictions_per_minute: int
    # See _SECONDS.
    mark_after_seconds: float
    keep_mark_seconds: float
    flap_seconds: float
    back_off_seconds: float
    max_back_off_seconds: float
    sets: tuple[PlaceholderSet, ...]
    # Empty where no controller labels nodes.
    pullers: tuple[Puller, ...]
    startup_taint: str
    # By schedulerName.
    profiles: Mapping[str, Profile]
    # Why the model can't follow the other profiles, by schedulerName. Under "": a fault of the
    # whole configuration.
    profile_faults: Mapping[str, ProfileError]
    # The class of a pod, by its labels and those of its namespace, as a Snapshot has them.
    class_of: Callable[[Pod, Mapping[str, Mapping[str, str]] | None], PodClass | None]
    # Names of the classes of users, and of the classes that placeholders keep away from.
    user_classes: frozenset[str]

    def profile_fault(self, pods: Iterable[Pod]) -> ProfileError | None:
        """Return why the model can't follow the scheduler of one of these pods. None: it can."""
        scheduler_names = ["", *(pod.scheduler_name for pod in pods)]
        for name in scheduler_names:
            if name in self.profile_faults:
                return self.profile_faults[name]
        return None


def read_mover_settings(release: ReleaseDocument) -> MoverSettings:
    """Read release.json. If the mover is switched off, the settings have no sets."""
    at = "placeholderMover"
    read = release.read
    mover = read.mapping(release.document.get(at), at)
    read.known(mover, at, _KEYS)

    def seconds(key: str) -> float:
        return float(read.integer(mover.get(key, _SECONDS[key]), f"{at}.{key}"))

    is_on = read.flag(mover.get("enabled"), f"{at}.enabled")
    profiles, faults = _read_profiles(release.scheduler_configuration, release.minor)
    return MoverSettings(
        label_prefix=attract_prefix(release.name, release.namespace),
        evictions_per_minute=release.evictions_per_minute,
        mark_after_seconds=seconds("markAfterSeconds"),
        keep_mark_seconds=seconds("keepMarkSeconds"),
        flap_seconds=seconds("flapSeconds"),
        back_off_seconds=seconds("backOffSeconds"),
        max_back_off_seconds=seconds("maxBackOffSeconds"),
        sets=tuple(placeholder_set for placeholder_set in release.placeholder_sets if is_on),
        pullers=release.gate.labelling,
        startup_taint=startup_taint(release.name, release.namespace),
        profiles=profiles,
        profile_faults=faults,
        class_of=release.class_of,
        user_classes=_user_classes(release.classes),
    )


def _read_profiles(
    configuration: Mapping[str, Any] | None, minor: int
) -> tuple[Mapping[str, Profile], Mapping[str, ProfileError]]:
    """Return `profiles` and `profile_faults` of MoverSettings.

    configuration: of Roost's kube-scheduler; None: only the cluster's default scheduler places
    pods.
    """
    # Older clusters get the oldest kube-scheduler that is modelled.
    minor = max(minor, OLDEST_MINOR)
    of_cluster = {"default-scheduler": default_profile(minor)}
    if configuration is None:
        return of_cluster, {}
    try:
        profiles, faults = read_each_profile(configuration, minor)
    except ProfileError as error:
        return of_cluster, {"": error}
    return {**of_cluster, **profiles}, faults


def _user_classes(classes: Mapping[str, PodClass]) -> frozenset[str]:
    """Names of classes of users, and of those that placeholders keep away from."""
    names: set[str] = set()
    for pod_class in classes.values():
        if pod_class.is_of_users:
            names.add(pod_class.name)
        if pod_class.is_of_placeholders:
            names.update(name for name, weight in pod_class.avoid.items() if weight > TIE_BREAK)
    return frozenset(names & classes.keys())
