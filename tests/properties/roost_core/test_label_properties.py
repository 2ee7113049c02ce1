"""What must always hold of names: hubs never share one, and one image has one however it is
written.
"""

import re
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from generator.render.functions import pulled_labels
from roost_core.objects.image_references import normalise_reference
from roost_core.placement import labels
from roost_core.placement.labels import pulled_label

IMAGE = "quay.io/jupyter/base-notebook:2026"
# Short parts of few kinds, so that two ways to join them often read alike; long ones are shortened.
PARTS = st.sampled_from(
    ["hub", "prod", "eu", "a", "roost", "hub-roost", "jupyter-org", "x" * 20, "x" * 19 + "y"]
)
# A release's name may hold dots, a namespace's may not.
RELEASES = st.lists(PARTS, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(
        ["-".join(parts)[:53].rstrip("-."), ".".join(parts)[:53].rstrip("-.")]
    )
)
NAMESPACES = st.lists(PARTS, min_size=1, max_size=4).map(
    lambda parts: "-".join(parts)[:63].rstrip("-")
)

# Each makes something that stands beside that of every other hub of a cluster.
CLUSTER_WIDE: dict[str, Callable[[str, str], str]] = {
    "cluster_object_name": lambda release, namespace: labels.cluster_object_name(
        release, namespace, "webhook"
    ),
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
# Those are keys of labels, taints and conditions: `<domain>/<name>`, both within Kubernetes'
# bounds.
KEYS = ("pulled_label", "attract_label", "startup_taint")
QUALIFIED = re.compile(
    r"(?P<domain>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


@pytest.mark.parametrize("name", CLUSTER_WIDE)
@given(one=st.tuples(RELEASES, NAMESPACES), other=st.tuples(RELEASES, NAMESPACES))
@example(one=("hub", "prod-eu"), other=("hub-prod", "eu"))
@example(one=("hub", "prod"), other=("hub.prod", "prod"))
def test_different_hubs_have_different_keys_and_names(
    name: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    assume(one != other)
    assert CLUSTER_WIDE[name](*one) != CLUSTER_WIDE[name](*other)


@pytest.mark.parametrize("name", IN_A_NAMESPACE)
@given(one=RELEASES, other=RELEASES)
@example(one="hub.a", other="hub-a")
@example(one="hub", other="hub-roost")
@example(one="roost", other="roost-roost")
def test_different_releases_of_a_namespace_have_different_names(
    name: str, one: str, other: str
) -> None:
    assume(one != other)
    assert IN_A_NAMESPACE[name](one) != IN_A_NAMESPACE[name](other)


@pytest.mark.parametrize("name", KEYS)
@given(hub=st.tuples(RELEASES, NAMESPACES))
def test_every_key_is_one_that_kubernetes_takes(name: str, hub: tuple[str, str]) -> None:
    found = QUALIFIED.fullmatch(CLUSTER_WIDE[name](*hub))
    assert found
    assert len(found["domain"]) <= 253


@given(one=st.tuples(RELEASES, NAMESPACES), other=st.tuples(RELEASES, NAMESPACES))
def test_a_hub_knows_its_own_node_labels_and_nobody_elses(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    for key in (labels.pulled_label(*one, IMAGE), labels.attract_label(*one, "default")):
        assert labels.is_own_node_label(*one, key)
        assert labels.is_own_node_label(*other, key) == (one == other)


@given(
    release=RELEASES | st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?", fullmatch=True),
    node=st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,80}[a-z0-9])?", fullmatch=True),
)
@example(release="roost.prod", node="n")
@example(release="h" * 32, node="n")
@example(release="h" * 33, node="n.internal")
@example(release="h" * 40 + "." + "h" * 12, node="n")
def test_each_pull_of_a_popular_image_begins_as_the_policy_has_it(release: str, node: str) -> None:
    prefix = labels.popular_prefix(release)
    assert labels.popular_pull_name(release, node, "uid", IMAGE).startswith(prefix)
    if len(release) <= 32:
        assert prefix == release.replace(".", "-") + "-popular-"


REGISTRIES = st.sampled_from(
    ["quay.io", "registry-1.docker.io", "localhost", "localhost:5000", "Registry", "a.b:1"]
)
NAME_PARTS = st.from_regex(r"[a-z0-9]{1,4}([._-][a-z0-9]{1,4})?", fullmatch=True).filter(
    lambda part: part != "localhost"
)
# What a name on Docker Hub may begin with; with a dot it would be read as a registry.
TEAMS = NAME_PARTS.filter(lambda part: "." not in part)
TAGS = st.sampled_from(["", ":latest", ":1", ":A_b"])
DIGESTS = st.sampled_from(["", "@sha256:" + "0" * 64])
REFERENCES = st.builds(
    lambda parts, tag, digest: "/".join(parts) + tag + digest,
    st.lists(
        st.one_of(
            NAME_PARTS, REGISTRIES, st.sampled_from(["docker.io", "index.docker.io", "library"])
        ),
        min_size=1,
    ),
    TAGS,
    DIGESTS,
)


@given(REFERENCES)
@example("docker.io/ubuntu")
@example("index.docker.io")
def test_a_full_name_is_its_own(reference: str) -> None:
    full = normalise_reference(reference)
    assert normalise_reference(full) == full
    registry, _, path = full.partition("/")
    assert registry != "index.docker.io"
    assert path
    # Never a name that Docker Hub couldn't have.
    assert registry != "docker.io" or "/" in path


@given(name=NAME_PARTS, team=st.none() | TEAMS, tag=TAGS, digest=DIGESTS)
def test_all_names_of_an_image_on_docker_hub_are_one(
    name: str, team: str | None, tag: str, digest: str
) -> None:
    path = name if team is None else f"{team}/{name}"
    spellings = [f"{prefix}{path}" for prefix in ("", "docker.io/", "index.docker.io/")]
    if team is None:
        spellings += [
            f"{prefix}library/{path}" for prefix in ("", "docker.io/", "index.docker.io/")
        ]
    assert len({normalise_reference(spelling + tag + digest) for spelling in spellings}) == 1


@given(registry=REGISTRIES, name=NAME_PARTS, tag=TAGS, digest=DIGESTS)
def test_an_image_of_another_registry_is_never_one_of_docker_hub(
    registry: str, name: str, tag: str, digest: str
) -> None:
    assert normalise_reference(f"{registry}/{name}{tag}{digest}").startswith(f"{registry}/{name}")


@given(st.lists(NAME_PARTS, min_size=1, max_size=3), st.one_of(st.just("docker.io"), REGISTRIES))
@example(["a.b", "c"], "docker.io")
@example(["library", "a", "b"], "docker.io")
def test_admission_by_policy_knows_no_spelling_that_means_another_image(
    parts: list[str], registry: str
) -> None:
    name = "/".join([registry, *parts])
    for spelling, label in pulled_labels("hub", "jhub", {"image": {"name": name}}, {}).items():
        assert normalise_reference(spelling) == normalise_reference(name)
        assert label == pulled_label("hub", "jhub", name)
