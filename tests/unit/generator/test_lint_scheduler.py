"""`roost validate` on kube-scheduler: what it would refuse, and what it would silently do otherwise."""

import pytest

from generator.checks.scheduler import seconds
from generator.schema.check import find_faults
from generator.values.release import Release
from tests.unit.generator.linted import assert_refused, assert_warned, found, laid, said, table


def raw(plugins: str = "{}", config: str = "") -> str:
    """Values of a profile with these plugins and this pluginConfig, and none of the spreading that is warned of."""
    spread = "{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}"
    return f"scheduler: {{profiles: {{user: {{plugins: {plugins}, pluginConfig: [{spread}, {config}]}}}}}}"


def profiles(rows: str) -> list[tuple[str, str]]:
    """Rows of a profile's `plugins => reason`, or of `ARGUMENTS => reason` for one entry of its pluginConfig."""
    return [(raw(config=one) if one.startswith("{name:") else raw(one), reason) for one, reason in table(rows)]


# kube-scheduler would not start, or do something else than is written.
ERRORS = profiles("""
{score: {enabled: [{name: ImageLocality, weight: 0}]}} => 0 means 1
{score: {enabled: [{name: ImageLocality, weight: 1}, {name: ImageLocality, weight: 2}]}} => each plugin once
{filter: {enabled: [{name: Foo}]}} => a plugin of kube-scheduler
{score: {enabled: [{name: NodeName, weight: 1}]}} => extension point score
{preScore: {disabled: [{name: TaintToleration}]}}
  => TaintToleration still scores, and fails for every pod without its
{preScore: {disabled: [{name: "*"}]}}
  => PodTopologySpread, InterPodAffinity still score, and fail for every pod without their
{multiPoint: {disabled: [{name: "*"}]}} => no queue sort plugin
{multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}]}} => no bind plugin
{queueSort: {disabled: [{name: PrioritySort}]}} => one scheduler has one queue
{score: {enabled: [{name: imagelocality, weight: 5}]}} => Did you mean ImageLocality?
{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio:
  {shape: [{utilization: 50, score: 10}, {utilization: 50, score: 1}]}}}} => in rising order
{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: cpu,
  weight: 2}]}}}
  => each resource once
{name: NodePorts, args: {ports: 1}} => it takes no arguments
""") + table("""
scheduler: {profiles: {user: {pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}}} => each plugin once
scheduler: {profiles: {user: {pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List,
  defaultConstraints: [{topologyKey: a}, {topologyKey: a}]}}]}}} => each topologyKey and whenUnsatisfiable once
{scheduler: {profiles: {user: null, build: null, placeholder: null}},
  podClasses: {user: {profile: ''}, build: {profile: ''}, placeholder: {profile: ''}}} => at least one
scheduler: {profiles: {user: {strategy: null}}} => strategy: found nothing
scheduler: {leaderElection: {leaseDuration: 10s}} => more than renewDeadline (10s)
scheduler: {leaderElection: {retryPeriod: 9s}} => times retryPeriod (9s)
scheduler: {replicas: 0} => pods with a profile stay Pending
""")
# The schema refuses these; a hundred weights then stay below kube-scheduler's int64.
UNFIT = profiles("""
{scores: {}} => scores: found an unknown key
{score: {on: []}} => expected one of disabled, enabled
{score: {enabled: [{weight: 1}]}} => enabled[0].name: found nothing
{score: {enabled: [{name: ImageLocality, weight: -1}]}} => weight: found -1
{score: {enabled: [{name: ImageLocality, weight: 2147483648}]}} => weight: found 2147483648
{multiPoint: {enabled: [{name: ImageLocality, weight: 92233720368547759}]}} => from 0 to 2147483647
{name: NodeAffinity, args: {added: 1}} => args.added: found an unknown key
{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}} => an integer from 0 to 100
{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}
  => else no node would be considered
{name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 2}]}}
  => found 2, expected an integer from 0 to 1
{name: NodeResourcesFit, args: {scoringStrategy: {resources: [{name: cpu, weight: 1}]}}} => type: found nothing
{name: NodeResourcesFit, args: {scoringStrategy: {type: Odd}}} => one of LeastAllocated
{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 0}]}}}
  => 0 means 1
{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio}}} => expected a shape, for this type
{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, requestedToCapacityRatio:
  {shape: [{utilization: 0, score: 1}]}}}} => nothing, for this type
{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio,
  requestedToCapacityRatio: {shape: []}}}}
  => 0 entries
{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio:
  {shape: [{utilization: 101, score: 1}]}}}} => utilization: found 101, expected an integer from 0 to 100
""") + table("""
scheduler: {profiles: {user: {pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints:
  [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}]}}} => need defaultingType: List
scheduler: {profiles: {user: {pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List,
  defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway,
  labelSelector: {matchLabels: {a: b}}}]}}]}}} => kube-scheduler deduces it
""")
WARNINGS = profiles("""
{score: {disabled: [{name: Foo}]}} => ignores it silently
{name: Foo, args: {a: 1}} => ignores it silently
{score: {enabled: [{name: TaintToleration}]}} => gets 1, not its default 3
{score: {disabled: [{name: "*"}]}} => the first node that fits
{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio:
  {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}}}} => is left out of the mean
""") + table("""
scheduler: {resources: {requests: {memory: 64}}} => 64 is 64 bytes
scheduler: {profiles: {user: {pluginConfig: [{name: NodeAffinity}]}}} => works against packing
scheduler: {percentageOfNodesToScore: 50} => is often not scored
scheduler: {profiles: {user: {strategy: spread}}} => contradicts the strategy spread
{scheduler: {hostNetwork: true}, webhook: {hostNetwork: true, port: 10259}} => webhook.port: scheduler.port is 10259 too
""")
OWN_PLUGIN = raw("{score: {enabled: [{name: Mine, weight: 5}]}}")[:-1] + ", image: {name: quay.io/me/my-scheduler}}"


@pytest.mark.parametrize(("text", "reason"), ERRORS)
def test_values_that_can_not_work_are_refused_with_the_reason(text: str, reason: str) -> None:
    assert_refused(text, reason)


@pytest.mark.parametrize(("text", "reason"), UNFIT)
def test_what_kube_scheduler_would_not_take_is_said(text: str, reason: str) -> None:
    (fault,) = find_faults(laid(text))
    assert reason in str(fault)
    assert fault.line


@pytest.mark.parametrize(("text", "reason"), [*WARNINGS, (OWN_PLUGIN, "must include it")])
def test_values_that_surprise_are_warned_of_with_the_reason(text: str, reason: str) -> None:
    assert_warned(text, reason)


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
        (raw(config="{name: DynamicResources, args: {filterTimeout: 5s}}"), 34),
        (raw(config="{name: DynamicResources, args: {bindingTimeout: 5s}}"), 36),
    ],
)
def test_a_key_of_a_later_minor_is_said(profile: str, minor: int) -> None:
    expected = f"nothing, for kube-scheduler 1.{minor - 1}: it came with 1.{minor}."
    assert expected in said(profile, Release(kube_version=f"v1.{minor - 1}.0"))
    assert found(profile, Release(kube_version=f"v1.{minor}.0")) == []


ON = "featureGates: {'1.36': {GangScheduling: true, GenericWorkload: true, OpportunisticBatching: false}}"


@pytest.mark.parametrize(
    ("plugin", "minor", "expected"),
    [
        ("TopologyPlacementGenerator", 35, "it came with 1.36"),
        ("DeferredPodScheduling", 36, "it came with 1.37"),
        (
            *("DeferredPodScheduling", 37),
            "behind the feature gate InPlacePodVerticalScalingSchedulerPreemption, which is off",
        ),
        ("GangScheduling", 36, "behind the feature gate GangScheduling, which is off"),
    ],
)
def test_a_plugin_of_a_later_minor_or_behind_a_gate_is_said(plugin: str, minor: int, expected: str) -> None:
    text, release = raw(f"{{multiPoint: {{enabled: [{{name: {plugin}}}]}}}}"), Release(kube_version=f"v1.{minor}.0")
    assert expected in said(text, release)
    if plugin == "GangScheduling":
        assert said(text.replace("{profiles", f"{{{ON}, profiles"), release) == ""


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
