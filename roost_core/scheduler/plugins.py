"""The one table of kube-scheduler's in-tree plugins and of the feature gates that change what they
decide.

It says which plugins each minor has, at which extension points, and with what weight. The values'
lint and the model both read it, so that what passes the lint can be modelled. Source:
kube-scheduler's plugins.NewInTreeRegistry, each plugin's interfaces, config/v1 default_plugins.go
and features/kube_features.go, v1.33 to v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
NODE_NAME: Final = "NodeName"
TAINT_TOLERATION: Final = "TaintToleration"
NODE_AFFINITY: Final = "NodeAffinity"
NODE_PORTS: Final = "NodePorts"
NODE_RESOURCES_FIT: Final = "NodeResourcesFit"
POD_TOPOLOGY_SPREAD: Final = "PodTopologySpread"
INTER_POD_AFFINITY: Final = "InterPodAffinity"
DYNAMIC_RESOURCES: Final = "DynamicResources"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"
BALANCED_ALLOCATION: Final = "NodeResourcesBalancedAllocation"
IMAGE_LOCALITY: Final = "ImageLocality"
VOLUME_BINDING: Final = "VolumeBinding"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"

# The minors of Kubernetes that Roost supports, 1.33 to 1.37. What else names them is made from
# these two, or held to them by tests/unit/repository/test_kubernetes_minors.py.
OLDEST_MINOR: Final = 33
NEWEST_MINOR: Final = 37
# Before it, kube-scheduler picks one of several best nodes at random.
PICKS_ALIKE_SINCE: Final = 35

# These score from what their preScore computed, and fail every pod without it. (NodeAffinity then
# computes it itself; NodeResourcesFit and NodeResourcesBalancedAllocation too.)
SCORES_NEED_PRE_SCORE: Final[tuple[str, ...]] = (
    TAINT_TOLERATION,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
)
FILTERS_NEED_PRE_FILTER: Final[tuple[str, ...]] = (
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
)


@dataclass(frozen=True, slots=True)
class Plugin:
    """An in-tree plugin."""

    points: frozenset[str]
    # The default weight of its score.
    weight: int = 0
    # The first minor of Kubernetes that has it.
    since: int = OLDEST_MINOR
    # Enabled only with all of these gates on; (): always.
    gates: tuple[str, ...] = ()
    # Extension points that were added later, and with which minor.
    later: Mapping[str, int] | None = None

    def points_in(self, minor: int) -> frozenset[str]:
        """Its extension points in this minor."""
        if minor < self.since:
            return frozenset()
        return self.points | {
            point for point, since in (self.later or {}).items() if minor >= since
        }


def _of(
    points: str, weight: int = 0, *, since: int = OLDEST_MINOR, gates: str = "", **later: int
) -> Plugin:
    return Plugin(frozenset(points.split()), weight, since, tuple(gates.split()), later or None)


# In kube-scheduler's default order.
PLUGINS: Final[Mapping[str, Plugin]] = {
    "SchedulingGates": _of("preEnqueue"),
    "PrioritySort": _of("queueSort"),
    NODE_UNSCHEDULABLE: _of("filter", preFilter=37),
    NODE_NAME: _of("filter", preFilter=37),
    TAINT_TOLERATION: _of("filter preScore score", 3, preFilter=37),
    NODE_AFFINITY: _of("preFilter filter preScore score", 2),
    NODE_PORTS: _of("preFilter filter"),
    # About bound pods that wait for room to grow. It has no part in where another pod goes.
    "DeferredPodScheduling": _of(
        "preFilter filter permit", since=37, gates="InPlacePodVerticalScalingSchedulerPreemption"
    ),
    NODE_RESOURCES_FIT: _of("preFilter filter preScore score", 1, placementScore=36),
    "VolumeRestrictions": _of("preFilter filter"),
    "NodeVolumeLimits": _of("preFilter filter"),
    VOLUME_BINDING: _of("preFilter filter preScore score reserve preBind", 1),
    "VolumeZone": _of("preFilter filter"),
    POD_TOPOLOGY_SPREAD: _of("preFilter filter preScore score", 2),
    INTER_POD_AFFINITY: _of("preFilter filter preScore score", 2),
    DYNAMIC_RESOURCES: _of(
        "preEnqueue preFilter filter postFilter reserve preBind",
        2,
        gates="DynamicResourceAllocation",
        score=35,
    ),
    DEFAULT_PREEMPTION: _of("preEnqueue postFilter"),
    BALANCED_ALLOCATION: _of("preScore score", 1),
    IMAGE_LOCALITY: _of("score", 1),
    "DefaultBinder": _of("bind"),
    NODE_DECLARED_FEATURES: _of("preFilter filter", since=35, gates="NodeDeclaredFeatures"),
    # About pods that belong to a group. They have no part in where another pod goes.
    "GangScheduling": _of("preEnqueue permit", since=35, gates="GangScheduling GenericWorkload"),
    "TopologyPlacementGenerator": _of(
        "placementGenerate", since=36, gates="TopologyAwareWorkloadScheduling"
    ),
    "PodGroupPodsCount": _of("placementScore", since=36, gates="TopologyAwareWorkloadScheduling"),
}


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate of kube-scheduler that affects where and when pods are placed."""

    since: int
    # From which minor on it is on by default; None: not yet.
    on_since: int | None = None
    # From which minor on it can't be changed; None: not yet.
    locked_since: int | None = None
    # The first minor without it; None: not yet.
    until: int | None = None

    def is_on(self, minor: int) -> bool:
        """Whether it is on by default."""
        return self.on_since is not None and minor >= self.on_since


GATES: Final[Mapping[str, Gate]] = {
    "DRAExtendedResource": Gate(34, 36, 37),
    "DRAPartitionableDevices": Gate(33, 36),
    "DynamicResourceAllocation": Gate(26, 34, 35),
    "GangScheduling": Gate(35, until=37),
    "GenericWorkload": Gate(35),
    "InPlacePodVerticalScalingSchedulerPreemption": Gate(37),
    "InterPodAffinityHostnameFastPath": Gate(37),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": Gate(34, 34),
    "NodeDeclaredFeatures": Gate(35, 36, 37),
    "NominatedNodeNameForExpectation": Gate(34, 35),
    "OpportunisticBatching": Gate(35, 35),
    "PodLevelResources": Gate(32, 34),
    "SchedulerAsyncAPICalls": Gate(34),
    "SchedulerAsyncPreemption": Gate(32, 33),
    "SchedulerPopFromBackoffQ": Gate(33, 33),
    "SchedulerQueueingHints": Gate(28, 32, 34),
    "StorageCapacityScoring": Gate(33, 37),
    "TaintTolerationComparisonOperators": Gate(35),
    "TopologyAwareWorkloadScheduling": Gate(36),
}
# The model knows one way of these gates only: pods are placed one by one, each by its own filters
# and scores. (OpportunisticBatching reuses the order that the pod before had, for pods without pod
# affinity and default spreading.)
MODELLED: Final[Mapping[str, bool]] = {
    "OpportunisticBatching": False,
    "TaintTolerationComparisonOperators": False,
}

_ANY: Final = ()
# By plugin and argument: the values that the model knows; _ANY: every one. The values listed here
# are kube-scheduler's defaults in all minors, so a configuration that writes them out changes
# nothing. Lists are as `_comparable` gives them.
ARGUMENTS: Final[Mapping[str, Mapping[str, tuple[object, ...]]]] = {
    NODE_AFFINITY: {"addedAffinity": (None,)},
    NODE_RESOURCES_FIT: {
        "scoringStrategy": _ANY,
        "ignoredResources": ([],),
        "ignoredResourceGroups": ([],),
    },
    BALANCED_ALLOCATION: {"resources": ([], ["cpu", "memory"])},
    INTER_POD_AFFINITY: {
        "hardPodAffinityWeight": (1,),
        "ignorePreferredTermsOfExistingPods": (False,),
    },
    POD_TOPOLOGY_SPREAD: {"defaultingType": _ANY, "defaultConstraints": _ANY},
    DEFAULT_PREEMPTION: {"minCandidateNodesPercentage": (10,), "minCandidateNodesAbsolute": (100,)},
    # About volumes and devices, which the model leaves to the scheduler.
    VOLUME_BINDING: {"bindTimeoutSeconds": _ANY, "shape": _ANY},
    DYNAMIC_RESOURCES: {"filterTimeout": _ANY, "bindingTimeout": _ANY},
}


def unmodelled(plugin: str, arguments: Mapping[str, object]) -> list[str]:
    """The arguments of a plugin that the model would get wrong."""
    known = {"apiVersion": _ANY, "kind": _ANY, **ARGUMENTS.get(plugin, {})}
    keys = []
    for key, value in arguments.items():
        if value is None or known.get(key) == _ANY:
            continue
        if _comparable(value) not in known.get(key, ()):
            keys.append(key)
    return keys


def _comparable(value: object) -> object:
    """A list as its entries' names, sorted; any other value as it is."""
    if not isinstance(value, list):
        return value
    return sorted(
        str(entry.get("name") if isinstance(entry, Mapping) else entry) for entry in value
    )


def is_on(gate: str, minor: int, given: Mapping[str, bool]) -> bool:
    """Whether a gate is on in this minor's kube-scheduler. given: those that are set.

    A gate that was removed counts as on: what it guarded is there for everybody.
    """
    known = GATES[gate]
    if known.until is not None and minor >= known.until:
        return True
    return given.get(gate, known.is_on(minor))


def default_plugins(minor: int) -> list[tuple[str, int]]:
    """Return name and weight of the default plugins of this minor, in order."""
    plugins = [
        (name, plugin.weight if "score" in plugin.points_in(minor) else 0)
        for name, plugin in PLUGINS.items()
        if plugin.since <= minor and all(is_on(gate, minor, {}) for gate in plugin.gates)
    ]
    if minor >= 37:
        # kube-scheduler 1.37 swapped NodeUnschedulable and NodeName, which follows it.
        at = [name for name, _ in plugins].index(NODE_UNSCHEDULABLE)
        plugins[at : at + 2] = reversed(plugins[at : at + 2])
    return plugins


def names_at(point: str, minor: int) -> frozenset[str]:
    """Return the plugins of an extension point."""
    return frozenset(name for name, plugin in PLUGINS.items() if point in plugin.points_in(minor))
