"""A KubeSchedulerConfiguration becomes the plugins, weights and arguments that kube-scheduler would run."""

from typing import Any

import pytest
import yaml

from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import ProfileError, read_profiles
from tests.unit.generator.linted import table
from tests.unit.scheduling_builders import arguments, profile


def scores(**plugins: Any) -> list[tuple[str, int]]:
    return list(profile(plugins=plugins).scores)


def test_a_plugin_named_under_score_gets_that_weight_and_comes_first() -> None:
    found = scores(score={"enabled": [{"name": "ImageLocality", "weight": 9}, {"name": "NodeAffinity", "weight": 5}]})
    assert found[:3] == [("ImageLocality", 9), ("NodeAffinity", 5), ("TaintToleration", 3)]
    assert len(found) == len(scores())


@pytest.mark.parametrize(
    ("plugins", "plugin", "weight"),
    [
        # The score list's weight stands over multiPoint's.
        (
            "{multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}, score: {enabled: [{name: NodeAffinity}]}}",
            "NodeAffinity",
            1,
        ),
        # No weight means 1, not the default.
        ("{score: {enabled: [{name: TaintToleration}]}}", "TaintToleration", 1),
        ("{score: {enabled: [{name: TaintToleration, weight: 0}]}}", "TaintToleration", 1),
        # A disabled scorer is gone unless it is enabled beside.
        ("{score: {disabled: [{name: ImageLocality}]}}", "ImageLocality", None),
        (
            "{score: {disabled: [{name: ImageLocality}], enabled: [{name: ImageLocality, weight: 4}]}}",
            "ImageLocality",
            4,
        ),
    ],
)
def test_a_scorers_weight_is_what_kube_scheduler_makes_of_it(plugins: str, plugin: str, weight: int | None) -> None:
    assert dict(scores(**yaml.safe_load(plugins))).get(plugin) == weight


def test_a_star_leaves_only_what_is_enabled_beside_it() -> None:
    only = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity", "weight": 2}]}
    assert scores(score=only) == [("NodeAffinity", 2)]


def test_arguments_are_read() -> None:
    ratio = {"type": "RequestedToCapacityRatio", "resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}]}
    shape = {"requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 1}]}}
    found = profile(**arguments("NodeResourcesFit", scoringStrategy={**ratio, **shape}))
    assert found.fit.resources == (("cpu", 3), ("memory", 1))
    assert found.fit.shape == ((0, 100), (100, 10))
    assert profile(**arguments("InterPodAffinity", hardPodAffinityWeight=0)).hard_pod_affinity_weight == 0
    assert profile(**arguments("PodTopologySpread", defaultingType="List")).default_spread == ()
    assert profile(**arguments("DefaultPreemption", minCandidateNodesAbsolute=7)).min_candidates == 7


def test_the_profiles_own_percentage_stands_over_the_global_one() -> None:
    body = {
        "percentageOfNodesToScore": 30,
        "profiles": [{"schedulerName": "a", "percentageOfNodesToScore": 70}, {"schedulerName": "b"}],
    }
    found = read_profiles(body, NEWEST_MINOR)
    assert (found["a"].percentage_of_nodes_to_score, found["b"].percentage_of_nodes_to_score) == (70, 30)


UNKNOWN = table("""
profiles: [{}, {}] => schedulerName
profiles: [{schedulerName: a}, {schedulerName: a}] => twice
profiles: [{plugins: {score: {enabled: [{name: Own}]}}}] => Own
profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}] => NodeName
profiles: [{plugins: {preScore: {disabled: [{name: InterPodAffinity}]}}}] => preScore
profiles: [{plugins: {preFilter: {disabled: [{name: "*"}]}}}] => preFilter
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {}}}]}] => scoringStrategy.type
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio}}}]}]
  => no shape
profiles: [{pluginConfig: [{name: A}, {name: A}]}] => twice
profiles: [a] => expected an object
profiles: [{plugins: [score]}] => shape
extenders: [{filterVerb: f}] => extenders
""")


@pytest.mark.parametrize(("body", "word"), UNKNOWN)
def test_what_the_model_can_not_run_is_named(body: str, word: str) -> None:
    with pytest.raises(ProfileError, match=word):
        read_profiles(yaml.safe_load(body), NEWEST_MINOR)


def test_older_minors_than_those_known_are_refused_and_newer_ones_taken_for_the_newest() -> None:
    with pytest.raises(ProfileError, match=r"1\.32"):
        read_profiles({}, 32)
    assert read_profiles({}, 40)["default-scheduler"].minor == NEWEST_MINOR
