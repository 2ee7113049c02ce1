"""Two hubs never share a key, a label or a name, whatever they and their namespaces are called."""

import re
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from roost_core.placement import labels

IMAGE = "quay.io/jupyter/base-notebook:2026"
# Short parts of few kinds, so that two ways to join them often read alike; long ones are shortened.
PARTS = st.sampled_from(["hub", "prod", "eu", "a", "roost", "hub-roost", "jupyter-org", "x" * 20, "x" * 19 + "y"])
# A release's name may hold dots, a namespace's may not.
RELEASES = st.lists(PARTS, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(["-".join(parts)[:53].rstrip("-."), ".".join(parts)[:53].rstrip("-.")])
)
NAMESPACES = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "-".join(parts)[:63].rstrip("-"))

# Each makes something that stands beside that of every other hub of a cluster.
CLUSTER_WIDE: dict[str, Callable[[str, str], str]] = {
    "cluster_object_name": lambda release, namespace: labels.cluster_object_name(release, namespace, "webhook"),
    "scheduler_name": lambda release, namespace: labels.scheduler_name(release, namespace, "user"),
    "pulled_label": lambda release, namespace: labels.pulled_label(release, namespace, IMAGE),
    "pulled_prefix": labels.pulled_prefix,
    "attract_label": lambda release, namespace: labels.attract_label(release, namespace, "default"),
    "attract_prefix": labels.attract_prefix,
    "startup_taint": labels.startup_taint,
}
# Those of one namespace: two releases in it have two names.
IN_A_NAMESPACE: dict[str, Callable[[str], str]] = {
    "object_name": lambda release: labels.object_name(labels.base_name(release), "controllers"),
    "object_name of a StatefulSet": lambda release: labels.object_name(
        labels.base_name(release), "placeholder-default", 52
    ),
    "popular_pull_name": lambda release: labels.popular_pull_name(release, "node", "uid", IMAGE),
}
# Those are keys of labels, taints and conditions: `<domain>/<name>`, both within Kubernetes' bounds.
KEYS = ("pulled_label", "attract_label", "startup_taint")
QUALIFIED = re.compile(r"(?P<domain>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@pytest.mark.parametrize("name", CLUSTER_WIDE)
@given(one=st.tuples(RELEASES, NAMESPACES), other=st.tuples(RELEASES, NAMESPACES))
@example(one=("hub", "prod-eu"), other=("hub-prod", "eu"))
@example(one=("hub", "prod"), other=("hub.prod", "prod"))
def test_different_hubs_have_different_keys_and_names(name: str, one: tuple[str, str], other: tuple[str, str]) -> None:
    assume(one != other)
    assert CLUSTER_WIDE[name](*one) != CLUSTER_WIDE[name](*other)


@pytest.mark.parametrize("name", IN_A_NAMESPACE)
@given(one=RELEASES, other=RELEASES)
@example(one="hub.a", other="hub-a")
@example(one="hub", other="hub-roost")
@example(one="roost", other="roost-roost")
def test_different_releases_of_a_namespace_have_different_names(name: str, one: str, other: str) -> None:
    assume(one != other)
    assert IN_A_NAMESPACE[name](one) != IN_A_NAMESPACE[name](other)


@pytest.mark.parametrize("name", KEYS)
@given(hub=st.tuples(RELEASES, NAMESPACES))
def test_every_key_is_one_that_kubernetes_takes(name: str, hub: tuple[str, str]) -> None:
    found = QUALIFIED.fullmatch(CLUSTER_WIDE[name](*hub))
    assert found
    assert len(found["domain"]) <= 253


@given(one=st.tuples(RELEASES, NAMESPACES), other=st.tuples(RELEASES, NAMESPACES))
def test_a_hub_knows_its_own_node_labels_and_nobody_elses(one: tuple[str, str], other: tuple[str, str]) -> None:
    for key in (labels.pulled_label(*one, IMAGE), labels.attract_label(*one, "default")):
        assert labels.is_own_node_label(*one, key)
        assert labels.is_own_node_label(*other, key) == (one == other)
