"""A fault never hides an unrelated one: of whatever subset of faults stands in the values, each is found."""

import itertools
from collections.abc import Iterable
from typing import Any, Final

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.pipeline import find_all_faults
from generator.values.merge import merge_maps
from generator.values.release import Release
from tests.unit.generator.linted import laid

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
    ("singleuser: {profileList: [{kubespawner_override: {image: 'a b'}}]}", "singleuser.profileList"),
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


def test_each_is_a_fault_by_itself() -> None:
    for values, key in ALONE:
        assert key in faults_in(values)


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
