"""What must hold of any values: each fault is found beside others, and what is accepted renders and is read."""

import itertools
import json
from collections.abc import Iterable
from typing import Any, Final

import yaml
from hypothesis import HealthCheck, assume, event, example, given, reject, settings
from hypothesis import strategies as st

from generator.checks import lint
from generator.faults import ValuesError
from generator.locations import chart_folder
from generator.pipeline import find_all_faults
from generator.render.manifests import Identity, render
from generator.schema.check import find_faults
from generator.values.loader import load
from generator.values.merge import Merged, merge_maps, merge_values
from generator.values.release import Release
from tests.parity.drawn_values import overrides
from tests.unit.generator.linted import laid
from webhook.settings import read_settings

# Values with one fault each, of the schema or of a check, and its key.
FAULTY: Final = (
    ("placeholders: [{name: A_b, replicas: 1}]", "placeholders[0].name"),
    ("placeholders: [{name: a, replicas: -1}, 7]", "placeholders[0].replicas"),
    ("placeholders: [{name: A_b, replicas: -1}]", "placeholders[0].replicas"),
    ("placeholders: 3", "placeholders"),
    ("podClasses: {user: {join: {nobody: 5}}}", "podClasses.user.join.nobody"),
    ("podClasses: {build: {match: {labels: {'no label!': x}}}}", 'podClasses.build.match.labels["no label!"]'),
    ("podClasses: {build: {profile: none}}", "podClasses.build.profile"),
    ("scheduler: {profiles: {user: {strategy: fast}}}", "scheduler.profiles.user.strategy"),
    ("scheduler: {replicas: two}", "scheduler.replicas"),
    ("scheduler: {target: mars}", "scheduler.target"),
    ("singleuser: {image: {tag: [1]}}", "singleuser.image.tag"),
    ("singleuser: {profileList: [{kubespawner_override: {image: 'a b'}}]}", "singleuser.profileList[0]"),
    ("singleuser: {extraTolerations: [{operator: Perhaps}, {key: 1}]}", "singleuser.extraTolerations[0].operator"),
    ("prePuller: {enabled: maybe}", "prePuller.enabled"),
    ("imageGate: {mode: always}", "imageGate.mode"),
    ("webhook: {timeoutSeconds: 0, replicas: many}", "webhook.timeoutSeconds"),
    ("priorityClasses: {placeholder: 5, user: 1}", "priorityClasses.placeholder"),
    ("unknown: 1", "unknown"),
)


def faults_in(values: Any) -> set[str]:
    return {fault.key for fault in find_all_faults(laid(yaml.safe_dump(values)), Release())}


ALONE: Final = [(yaml.safe_load(text), key) for text, key in FAULTY]


def assert_all_found(chosen: Iterable[tuple[Any, str]]) -> None:
    together: dict[str, object] = {}
    for values, _ in chosen:
        together = merge_maps(together, values)
    assert {key for _, key in chosen} <= faults_in(together)


def different(one: tuple[Any, str]) -> str:
    """The key at the top: lists replace, so that two faults of one list can't be written beside each other."""
    return str(next(iter(one[0])))


def test_no_fault_hides_one_other() -> None:
    for pair in itertools.combinations(ALONE, 2):
        if different(pair[0]) != different(pair[1]):
            assert_all_found(pair)


@given(st.lists(st.sampled_from(ALONE), min_size=3, max_size=8, unique_by=different))
@settings(deadline=None, max_examples=40)
def test_no_faults_hide_others(chosen: list[tuple[Any, str]]) -> None:
    assert_all_found(chosen)


DEFAULTS = load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")
RELEASE = Release("hub", "jhub", "v1.37.2")
# What the policy is made of.
POLICY_KEYS = {"podClasses", "imageGate", "singleuser", "prePuller", "replaceSchedulers", "placeholders"}
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def merged_of(values: dict[str, object]) -> Merged:
    """Merge drawn values; those that hold what no file may (control characters, an entry twice) are drawn again."""
    try:
        merged = merge_values(DEFAULTS, [load(json.dumps(values, ensure_ascii=False).encode(), "drawn.yaml")])
    except ValuesError:
        reject()
    assume(find_faults(merged) == [])
    return merged


def is_accepted(merged: Merged) -> bool:
    refused = any(fault.severity == "error" for fault in lint(merged, RELEASE))
    event("refused by the lint" if refused else "accepted")
    return not refused


@SLOW
@given(overrides(DEFAULTS))
def test_whatever_fits_the_schema_renders_to_objects_with_the_identity_of_their_heads(
    values: dict[str, object],
) -> None:
    for manifest in render(merged_of(values).values, RELEASE):
        metadata = manifest.body["metadata"]
        assert isinstance(metadata, dict)
        read = (manifest.body["apiVersion"], manifest.body["kind"], metadata.get("namespace", ""), metadata["name"])
        assert tuple(manifest.identity) == read


@SLOW
@given(overrides(DEFAULTS))
@example({"singleuser": {"extraResource": {"limits": {"example.com/gpu": 1.5e300}}}})
@example({"singleuser": {"extraResource": {"limits": {"example.com/gpu": "1e99"}}}})
def test_whatever_the_lint_accepts_is_a_policy_that_the_webhook_reads(values: dict[str, object]) -> None:
    merged = merged_of({key: value for key, value in values.items() if key in POLICY_KEYS})
    if not is_accepted(merged):
        return
    (policy,) = (
        manifest.body["data"]
        for manifest in render(merged.values, RELEASE)
        if manifest.identity == Identity("v1", "ConfigMap", "jhub", "hub-roost-release")
    )
    assert isinstance(policy, dict)
    read_settings(policy["release.json"].encode())
