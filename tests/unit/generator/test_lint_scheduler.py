"""`roost validate` on kube-scheduler: what it would refuse, and what it would silently do otherwise."""

import pytest

from generator.checks.scheduler import seconds
from generator.schema.check import find_faults
from generator.values.release import Release
from tests.unit.generator.linted import assert_refused, assert_warned, found, laid, said


def raw(plugins: str = "{}", config: str = "[]") -> str:
    spread = "{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}"
    given = f"[{spread}, {config[1:-1]}]" if config != "[]" else f"[{spread}]"
    return f"scheduler: {{profiles: {{user: {{plugins: {plugins}, pluginConfig: {given}}}}}}}"


def fit(strategy: str) -> str:
    """A profile whose NodeResourcesFit has this scoringStrategy."""
    return raw("{}", f"[{{name: NodeResourcesFit, args: {{scoringStrategy: {strategy}}}}}]")


ERRORS = {
    # kube-scheduler would not start, or do something else than is written.
    "weight 0 means 1": (raw("{score: {enabled: [{name: ImageLocality, weight: 0}]}}"), "0 means 1"),
    "double entry": (
        raw("{score: {enabled: [{name: ImageLocality, weight: 1}, {name: ImageLocality, weight: 2}]}}"),
        "each plugin once",
    ),
    "configured twice": (raw("{}", "[{name: NodeAffinity}, {name: NodeAffinity}]"), "each plugin once"),
    "unknown enabled plugin": (raw("{filter: {enabled: [{name: Foo}]}}"), "a plugin of kube-scheduler"),
    "wrong point": (raw("{score: {enabled: [{name: NodeName, weight: 1}]}}"), "extension point score"),
    "preScore off but scored": (
        raw("{preScore: {disabled: [{name: TaintToleration}]}}"),
        "TaintToleration still scores",
    ),
    "all preScore off": (raw('{preScore: {disabled: [{name: "*"}]}}'), "still score"),
    "multiPoint off": (raw('{multiPoint: {disabled: [{name: "*"}]}}'), "no queue sort plugin"),
    "no bind": (raw('{multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}]}}'), "no bind plugin"),
    "queue sorts differ": (raw("{queueSort: {disabled: [{name: PrioritySort}]}}"), "one scheduler has one queue"),
    "unknown weighted plugin": (
        raw("{score: {enabled: [{name: imagelocality, weight: 5}]}}"),
        "Did you mean ImageLocality?",
    ),
    "shape out of order": (
        fit(
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio: "
            "{shape: [{utilization: 50, score: 10}, {utilization: 50, score: 1}]}}"
        ),
        "in rising order",
    ),
    "resource twice": (
        fit("{type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: cpu, weight: 2}]}"),
        "each resource once",
    ),
    "argument of a plugin without": (raw("{}", "[{name: NodePorts, args: {ports: 1}}]"), "it takes no arguments"),
    "constraint twice": (
        (
            "scheduler: {profiles: {user: {pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, "
            "defaultConstraints: [{topologyKey: a}, {topologyKey: a}]}}]}}}"
        ),
        "each topologyKey and whenUnsatisfiable once",
    ),
    "no profile": (
        (
            "scheduler: {profiles: {user: null, build: null, placeholder: null}}\n"
            "podClasses: {user: {profile: ''}, build: {profile: ''}, placeholder: {profile: ''}}"
        ),
        "at least one",
    ),
    "profile without a strategy": ("scheduler: {profiles: {user: {strategy: null}}}", "strategy: found nothing"),
    "lease order": ("scheduler: {leaderElection: {leaseDuration: 10s}}", "more than renewDeadline (10s)"),
    "renew order": ("scheduler: {leaderElection: {retryPeriod: 9s}}", "times retryPeriod (9s)"),
    "no scheduler": ("scheduler: {replicas: 0}", "pods with a profile stay Pending"),
}
# The schema refuses these; a hundred weights then stay below kube-scheduler's int64.
UNFIT = {
    "unknown point": (raw("{scores: {}}"), "scores: found an unknown key"),
    "unknown key of a point": (raw("{score: {on: []}}"), "expected one of disabled, enabled"),
    "plugin without a name": (raw("{score: {enabled: [{weight: 1}]}}"), "enabled[0].name: found nothing"),
    "negative weight": (raw("{score: {enabled: [{name: ImageLocality, weight: -1}]}}"), "weight: found -1"),
    "weight over int32": (
        raw("{score: {enabled: [{name: ImageLocality, weight: 2147483648}]}}"),
        "weight: found 2147483648",
    ),
    "sum over int64": (
        raw("{multiPoint: {enabled: [{name: ImageLocality, weight: 92233720368547759}]}}"),
        "from 0 to 2147483647",
    ),
    "unknown argument": (raw("{}", "[{name: NodeAffinity, args: {added: 1}}]"), "args.added: found an unknown key"),
    "hard affinity weight": (
        raw("{}", "[{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]"),
        "an integer from 0 to 100",
    ),
    "no candidate nodes": (
        raw("{}", "[{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}]"),
        "else no node would be considered",
    ),
    "constraints without List": (
        (
            "scheduler: {profiles: {user: {pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: "
            "[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}]}}}"
        ),
        "need defaultingType: List",
    ),
    "constraint with a selector": (
        (
            "scheduler: {profiles: {user: {pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, "
            "defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, "
            "labelSelector: {matchLabels: {a: b}}}]}}]}}}"
        ),
        "kube-scheduler deduces it",
    ),
    "balanced by weight": (
        raw("{}", "[{name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 2}]}}]"),
        "weight: found 2, expected an integer from 0 to 1",
    ),
    "scoringStrategy without type": (fit("{resources: [{name: cpu, weight: 1}]}"), "type: found nothing"),
    "unknown scoringStrategy": (fit("{type: Odd}"), "one of LeastAllocated"),
    "resource weight 0": (fit("{type: MostAllocated, resources: [{name: cpu, weight: 0}]}"), "0 means 1"),
    "shape missing": (fit("{type: RequestedToCapacityRatio}"), "expected a shape, for this type"),
    "shape with another type": (
        fit("{type: MostAllocated, requestedToCapacityRatio: {shape: [{utilization: 0, score: 1}]}}"),
        "nothing, for this type",
    ),
    "shape without points": (
        fit("{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: []}}"),
        "0 entries",
    ),
    "utilization over 100": (
        fit("{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 101, score: 1}]}}"),
        "utilization: found 101, expected an integer from 0 to 100",
    ),
}
WARNINGS = {
    "bytes for mebibytes": ("scheduler: {resources: {requests: {memory: 64}}}", "64 is 64 bytes"),
    "disabled unknown plugin": (raw("{score: {disabled: [{name: Foo}]}}"), "ignores it silently"),
    "configured unknown plugin": (raw("{}", "[{name: Foo, args: {a: 1}}]"), "ignores it silently"),
    "weight left out": (raw("{score: {enabled: [{name: TaintToleration}]}}"), "gets 1, not its default 3"),
    "nothing scores": (raw('{score: {disabled: [{name: "*"}]}}'), "the first node that fits"),
    "default spreading": (
        "scheduler: {profiles: {user: {pluginConfig: [{name: NodeAffinity}]}}}",
        "works against packing",
    ),
    "shape with score 0": (
        fit(
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio: "
            "{shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}}"
        ),
        "is left out of the mean",
    ),
    "another scheduler's plugin": (
        raw("{score: {enabled: [{name: Mine, weight: 5}]}}")[:-1] + ", image: {name: quay.io/me/my-scheduler}}",
        "must include it",
    ),
    "few nodes scored": ("scheduler: {percentageOfNodesToScore: 50}", "is often not scored"),
    "spread with join": ("scheduler: {profiles: {user: {strategy: spread}}}", "contradicts the strategy spread"),
    "the scheduler's port of the node": (
        "scheduler: {hostNetwork: true}\nwebhook: {hostNetwork: true, port: 10259}",
        "webhook.port: scheduler.port is 10259 too",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_values_that_can_not_work_are_refused_with_the_reason(case: str) -> None:
    assert_refused(*ERRORS[case])


@pytest.mark.parametrize("case", UNFIT)
def test_what_kube_scheduler_would_not_take_is_said(case: str) -> None:
    text, reason = UNFIT[case]
    (fault,) = find_faults(laid(text))
    assert reason in str(fault)
    assert fault.line


@pytest.mark.parametrize("case", WARNINGS)
def test_values_that_surprise_are_warned_of_with_the_reason(case: str) -> None:
    assert_warned(*WARNINGS[case])


def test_the_lint_says_file_line_key_and_reason() -> None:
    assert said("scheduler:\n  replicas: 0\n") == (
        "prod.yaml:2: scheduler.replicas: found 0, expected at least 1. Without it pods with a profile stay Pending. "
        "Use scheduler.target: none to keep the cluster's scheduler."
    )


def test_a_cluster_older_than_every_known_scheduler_is_warned_of() -> None:
    assert "newer than the cluster" in said("", Release(kube_version="v1.32.0"))
    for minor in (*range(33, 38), 40):
        assert found("", Release(kube_version=f"v1.{minor}.0")) == []


@pytest.mark.parametrize(("text", "expected"), [("15s", 15), ("1m30s", 90), ("500ms", 0.5), ("1.5h", 5400), ("", 0)])
def test_go_durations_are_read_in_seconds(text: str, expected: float) -> None:
    assert seconds(text) == expected


def test_one_plugin_and_many_without_their_pre_score_are_told_apart() -> None:
    assert "TaintToleration still scores, and fails for every pod without its" in said(
        raw("{preScore: {disabled: [{name: TaintToleration}]}}")
    )
    assert "PodTopologySpread, InterPodAffinity still score, and fail for every pod without their" in said(
        raw("{preScore: {disabled: [{name: '*'}]}}")
    )


@pytest.mark.parametrize(
    ("gates", "version", "expected"),
    [
        ('"1.36": {InterPodAffinityHostnameFastPath: true}', "v1.36.0", "It came with 1.37: give it under that minor."),
        ('"1.36": {GangScheduling: false}', "v1.37.0", 'It went with 1.37: give "1.37" an entry without it.'),
        ('"1.36": {OpportunisticBatching: true}', "v1.36.0", "the simulator"),
        ('"1.36": {SchedulerAsyncPremption: false}', "v1.36.0", "not a feature gate that Roost knows"),
    ],
)
def test_feature_gates_that_the_clusters_scheduler_would_not_take_are_said(
    gates: str, version: str, expected: str
) -> None:
    assert expected in said(f"scheduler: {{featureGates: {{{gates}}}}}", Release(kube_version=version))


def test_gates_of_other_minors_are_no_matter() -> None:
    assert said('scheduler: {featureGates: {"1.40": {Unborn: true}}}', Release(kube_version="v1.36.0")) == ""


@pytest.mark.parametrize(
    ("profile", "minor"),
    [
        (raw("{placementScore: {disabled: [{name: NodeResourcesFit}]}}"), 36),
        (raw("{}", "[{name: DynamicResources, args: {filterTimeout: 5s}}]"), 34),
        (raw("{}", "[{name: DynamicResources, args: {bindingTimeout: 5s}}]"), 36),
    ],
)
def test_a_key_of_a_later_minor_is_said(profile: str, minor: int) -> None:
    expected = f"nothing, for kube-scheduler 1.{minor - 1}: it came with 1.{minor}."
    assert expected in said(profile, Release(kube_version=f"v1.{minor - 1}.0"))
    assert found(profile, Release(kube_version=f"v1.{minor}.0")) == []


def test_a_plugin_of_a_later_minor_or_behind_a_gate_is_said() -> None:
    topology = raw("{multiPoint: {enabled: [{name: TopologyPlacementGenerator}]}}")
    assert "it came with 1.36" in said(topology, Release(kube_version="v1.35.0"))
    deferred = raw("{multiPoint: {enabled: [{name: DeferredPodScheduling}]}}")
    assert "it came with 1.37" in said(deferred, Release(kube_version="v1.36.0"))
    gate = "InPlacePodVerticalScalingSchedulerPreemption"
    assert f"behind the feature gate {gate}, which is off" in said(deferred, Release(kube_version="v1.37.0"))
    gang = raw("{multiPoint: {enabled: [{name: GangScheduling}]}}")
    assert "behind the feature gate GangScheduling, which is off" in said(gang, Release(kube_version="v1.36.0"))
    on = "featureGates: {'1.36': {GangScheduling: true, GenericWorkload: true, "
    on += "OpportunisticBatching: false}}, "
    assert said(gang.replace("{profiles", "{" + on + "profiles"), Release(kube_version="v1.36.0")) == ""


@pytest.mark.parametrize(
    "text",
    [
        "scheduler: {target: none, replicas: 0, profiles: {user: {strategy: null}}}",
        raw("{score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 5}]}, multiPoint: {}}"),
        # It scores without its preScore.
        raw("{preScore: {disabled: [{name: NodeAffinity}]}}"),
    ],
)
def test_what_kube_scheduler_does_as_it_is_written_is_nothing_to_warn_of(text: str) -> None:
    assert found(text) == []
