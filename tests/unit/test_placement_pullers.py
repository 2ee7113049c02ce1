"""Which images the puller brings to which nodes: the groups that become DaemonSets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubespawner.utils import recursive_update

from placement.labels import puller_component, puller_container
from placement.managed_images import PullerGroup, managed_images, puller_groups

Values = dict[str, Any]
DEFAULT = "quay.io/o/default:1"
SELECTORS = st.dictionaries(st.sampled_from(["pool", "size", "zone"]), st.sampled_from(["a", "b", None]))


def singleuser(*profiles: Values, **more: Any) -> Values:
    return {"image": {"name": "quay.io/o/default", "tag": "1"}, "profileList": list(profiles), **more}


def override(image: str | None = None, **selector: str | None) -> Values:
    found: Values = {} if image is None else {"image": image}
    return {"kubespawner_override": {**found, **({"node_selector": selector} if selector else {})}}


def groups(values: Values, **puller: Any) -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    found = puller_groups(values, {"pullProfileListImages": True, "extraImages": {}, **puller})
    return {group.component: (group.node_selector, group.images) for group in found}


def test_images_come_in_the_order_of_their_use_and_once() -> None:
    values = singleuser(override("b:1"), override("quay.io/o/default:1"), override("docker.io/library/b:1"))
    extra = {"z": {"name": "c"}, "a": {"name": "d", "tag": "2"}}
    assert groups(values, extraImages=extra) == {"puller": ({}, (DEFAULT, "b:1", "d:2", "c"))}


def test_a_profile_with_nodes_of_its_own_gets_its_image_there_and_the_default_image_if_it_has_none() -> None:
    values = singleuser(override("gpu:1", pool="gpu"), override(pool="big"), nodeSelector={"users": "yes"})
    assert groups(values) == {
        "puller": ({"users": "yes"}, (DEFAULT,)),
        puller_component({"users": "yes", "pool": "gpu"}): ({"users": "yes", "pool": "gpu"}, ("gpu:1",)),
        puller_component({"users": "yes", "pool": "big"}): ({"users": "yes", "pool": "big"}, (DEFAULT,)),
    }


def test_choices_combine_as_a_user_may_choose() -> None:
    profile = {
        **override("never:1"),
        "profile_options": {
            "machine": {"choices": {"gpu": override(None, pool="gpu"), "cpu": {}}},
            "image": {"choices": {"r": override("r:1"), "julia": override("julia:1")}},
        },
    }
    found = groups({"image": {}, "profileList": [profile]})
    # By the names of options and choices: image before machine, julia before r.
    assert found == {
        "puller": ({}, ("julia:1", "r:1")),
        puller_component({"pool": "gpu"}): ({"pool": "gpu"}, ("julia:1", "r:1")),
    }


@pytest.mark.parametrize(("enabled", "images"), [(True, ("r:1", DEFAULT)), (False, ("r:1",)), ("true", ("r:1",))])
def test_where_a_user_may_type_something_else_than_an_image_the_profiles_own_stays(
    enabled: object, images: tuple[str, ...]
) -> None:
    option = {"choices": {"r": override("r:1")}, "unlisted_choice": {"enabled": enabled}}
    values = {**singleuser({"profile_options": {"image": option}}), "image": {}}
    values["profileList"][0] |= override(DEFAULT)
    assert groups(values) == {"puller": ({}, images)}


def test_an_image_that_a_user_types_is_pulled_nowhere() -> None:
    option = {"choices": {"r": override("r:1")}, "unlisted_choice": {"enabled": True, **override("{value}")}}
    assert groups(singleuser({"profile_options": {"image": option}})) == {"puller": ({}, (DEFAULT, "r:1"))}


def test_an_image_for_two_kinds_of_nodes_is_in_both_groups() -> None:
    found = groups(singleuser(override("a:1"), override("a:1", pool="x")))
    assert [images for _, images in found.values()] == [(DEFAULT, "a:1"), ("a:1",)]


def test_the_pullers_own_selector_is_added_everywhere_and_names_nothing() -> None:
    values = singleuser(override("a:1", pool="x"))
    without, narrowed = groups(values), groups(values, nodeSelector={"arch": "amd64"})
    assert without.keys() == narrowed.keys()
    assert all(selector["arch"] == "amd64" for selector, _ in narrowed.values())


def test_without_profile_images_profiles_are_passed_over_with_their_nodes() -> None:
    values = singleuser(override("a:1", pool="x"))
    assert groups(values, pullProfileListImages=False) == {"puller": ({}, (DEFAULT,))}


def test_the_gate_knows_just_what_is_pulled() -> None:
    values = singleuser(override("a:1", pool="x"), override("{typed}"))
    assert managed_images(values, {}) == {DEFAULT, "docker.io/library/a:1"}


def test_labels_that_are_no_text_are_passed_over() -> None:
    profile = {"kubespawner_override": {"node_selector": {"pool": 7, "size": ["x"], "kept": "y"}}}
    assert puller_component({"kept": "y"}) in groups(singleuser(profile))


@given(base=SELECTORS.map(lambda found: {key: value for key, value in found.items() if value}), over=SELECTORS)
def test_node_selectors_merge_as_in_kubespawner(base: dict[str, str], over: dict[str, str | None]) -> None:
    expected = dict(base)
    recursive_update(expected, over)
    (group,) = puller_groups({"nodeSelector": base, "profileList": [override("a:1", **over)]}, {})
    assert group == PullerGroup(group.component, expected, ("a:1",))
    assert (group.component == "puller") == (expected == base)


def test_names_are_readable_and_differ() -> None:
    assert puller_component({"pool": "A_100"}).startswith("puller-a-100-")
    assert puller_component({"a": "x"}) != puller_component({"b": "x"})
    assert puller_container("quay.io/jupyter/Base:2026.1") == puller_container("quay.io/jupyter/Base:2026.1")
    assert puller_container("nginx") == puller_container("docker.io/library/nginx:latest")
    assert puller_container("a/b:1") != puller_container("c/b:1")
