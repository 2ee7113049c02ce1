"""Which images the puller brings to which nodes: groups that become DaemonSets, and what the
controllers are told.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubespawner.utils import recursive_update

from generator.render.managed_images import PullerGroup, managed_images, puller_groups
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.image_gate.settings import GateSettings, read_gate
from roost_core.objects.node import Node
from roost_core.objects.selectors import (
    Taint,
    node_term_matches,
    read_node_terms,
    read_tolerations,
    untolerated,
)
from roost_core.placement.labels import puller_component, startup_taint
from roost_core.release.image_gate import Puller, managed_image, selects, serving
from roost_core.release.reader import Reader
from tests.builders import release_document

Values = dict[str, Any]
DEFAULT = "quay.io/o/default:1"
SELECTORS = st.dictionaries(
    st.sampled_from(["pool", "size", "zone"]), st.sampled_from(["a", "b", None])
)


def singleuser(*profiles: Values, **more: Any) -> Values:
    return {
        "image": {"name": "quay.io/o/default", "tag": "1"},
        "profileList": list(profiles),
        **more,
    }


def override(image: str | None = None, **selector: str | None) -> Values:
    found: Values = {} if image is None else {"image": image}
    return {"kubespawner_override": {**found, **({"node_selector": selector} if selector else {})}}


def groups(values: Values, **puller: Any) -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    found = puller_groups(values, {"pullProfileListImages": True, "extraImages": {}, **puller})
    return {group.component: (group.node_selector, group.images) for group in found}


def test_images_come_in_the_order_of_their_use_and_once() -> None:
    values = singleuser(
        override("b:1"), override("quay.io/o/default:1"), override("docker.io/library/b:1")
    )
    extra = {"z": {"name": "c"}, "a": {"name": "d", "tag": "2"}}
    assert groups(values, extraImages=extra) == {"puller": ({}, (DEFAULT, "b:1", "d:2", "c"))}


def test_a_profile_with_its_own_nodes_gets_its_image_there_or_else_the_default_image() -> None:
    values = singleuser(
        override("gpu:1", pool="gpu"), override(pool="big"), nodeSelector={"users": "yes"}
    )
    assert groups(values) == {
        "puller": ({"users": "yes"}, (DEFAULT,)),
        puller_component({"users": "yes", "pool": "gpu"}): (
            {"users": "yes", "pool": "gpu"},
            ("gpu:1",),
        ),
        puller_component({"users": "yes", "pool": "big"}): (
            {"users": "yes", "pool": "big"},
            (DEFAULT,),
        ),
    }


def test_choices_combine_as_a_user_may_choose() -> None:
    machines = {"gpu": override(None, pool="gpu"), "cpu": {}}
    images = {"r": override("r:1"), "julia": override("julia:1")}
    options = {"machine": {"choices": machines}, "image": {"choices": images}}
    # By the names of options and choices: image before machine, julia before r.
    assert groups(
        {"image": {}, "profileList": [{**override("never:1"), "profile_options": options}]}
    ) == {
        "puller": ({}, ("julia:1", "r:1")),
        puller_component({"pool": "gpu"}): ({"pool": "gpu"}, ("julia:1", "r:1")),
    }


@pytest.mark.parametrize(
    ("enabled", "images"), [(True, ("r:1", DEFAULT)), (False, ("r:1",)), ("true", ("r:1",))]
)
def test_where_a_user_may_type_something_else_than_an_image_the_profiles_own_stays(
    enabled: object, images: tuple[str, ...]
) -> None:
    option = {"choices": {"r": override("r:1")}, "unlisted_choice": {"enabled": enabled}}
    values = {**singleuser({"profile_options": {"image": option}}), "image": {}}
    values["profileList"][0] |= override(DEFAULT)
    assert groups(values) == {"puller": ({}, images)}


def test_an_image_that_a_user_types_is_pulled_nowhere() -> None:
    option = {
        "choices": {"r": override("r:1")},
        "unlisted_choice": {"enabled": True, **override("{value}")},
    }
    assert groups(singleuser({"profile_options": {"image": option}})) == {
        "puller": ({}, (DEFAULT, "r:1"))
    }


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


@given(
    base=SELECTORS.map(lambda found: {key: value for key, value in found.items() if value}),
    over=SELECTORS,
)
def test_node_selectors_merge_as_in_kubespawner(
    base: dict[str, str], over: dict[str, str | None]
) -> None:
    expected = dict(base)
    recursive_update(expected, over)
    (group,) = puller_groups({"nodeSelector": base, "profileList": [override("a:1", **over)]}, {})
    assert group == PullerGroup(group.component, expected, ("a:1",))
    assert (group.component == "puller") == (expected == base)


# --- where users may go
# -----------------------------------------------------------------------------------------------

GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
USERS = {
    "key": "hub.jupyter.org/dedicated",
    "operator": "Equal",
    "value": "user",
    "effect": "NoSchedule",
}
ON_USER_NODES = {"matchExpressions": [{"key": "purpose", "operator": "In", "values": ["user"]}]}
IN_A_ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


def profile(image: str | None = None, **over: Any) -> Values:
    return {"kubespawner_override": {**({} if image is None else {"image": image}), **over}}


def pulled_by(group: PullerGroup) -> dict[str, Any]:
    return {
        "tolerations": list(group.tolerations),
        "terms": list(group.required_terms),
        "images": group.images,
    }


def test_a_profile_with_tolerations_of_its_own_has_a_puller_that_tolerates_them() -> None:
    values = singleuser(
        profile("gpu:1", tolerations=[GPU]),
        extraTolerations=[{"key": "course", "operator": "Exists"}],
    )
    default, gpu = puller_groups(values, {"tolerations": [USERS]})
    assert pulled_by(default)["tolerations"] == [USERS, {"key": "course", "operator": "Exists"}]
    assert default.images == (DEFAULT,)
    # KubeSpawner replaces the users' list; the user pools' stays, for pools carry that taint beside
    # the GPU's.
    assert pulled_by(gpu) == {"tolerations": [USERS, GPU], "terms": [], "images": ("gpu:1",)}
    assert gpu.component.startswith("puller-")


@pytest.mark.parametrize("key", ["extra_resource_limits", "extra_resource_guarantees"])
@pytest.mark.parametrize(
    ("amount", "is_asked"), [(1, True), ("2", True), (0, False), ("0", False), (None, False)]
)
def test_who_asks_for_a_gpu_is_tolerated_where_its_taint_is_so_the_puller_goes_there(
    key: str, amount: object, is_asked: bool
) -> None:
    found = puller_groups(
        singleuser(profile("gpu:1", **{key: {"nvidia.com/gpu": amount, "cpu": 2}})), {}
    )
    tolerated = [list(group.tolerations) for group in found if "gpu:1" in group.images]
    assert tolerated == [[{"key": "nvidia.com/gpu", "operator": "Exists"}] if is_asked else []]


def test_required_terms_of_users_are_the_pullers_and_a_profiles_own_replace_them() -> None:
    values = singleuser(
        profile("zone:1", node_affinity_required=[IN_A_ZONE]),
        extraNodeAffinity={"required": [ON_USER_NODES]},
    )
    default, zone = puller_groups(values, {})
    assert default.required_terms == (ON_USER_NODES,)
    assert zone.required_terms == (IN_A_ZONE,)


def test_what_runs_beside_the_image_is_brought_first_to_all_its_nodes() -> None:
    values = singleuser(
        profile("gpu:1", node_selector={"pool": "gpu"}, init_containers=[{"image": "fuse:1"}]),
        initContainers=[{"name": "tc", "image": "tc:1"}, {"name": "none"}],
        networkTools={"image": {"name": "tools", "tag": "4"}},
        extraContainers=[{"image": "proxy:1"}, {"image": "tc:1"}, {"image": "{value}"}],
    )
    default, gpu = puller_groups(values, {})
    assert default.images == ("tc:1", "tools:4", "proxy:1", DEFAULT)
    assert gpu.images == ("tc:1", "tools:4", "proxy:1", "fuse:1", "gpu:1")
    assert "docker.io/library/tools:4" in managed_images(values, {})


LABELS = st.dictionaries(
    st.sampled_from(["purpose", "zone", "pool"]), st.sampled_from(["user", "a", "gpu"])
)
TAINTS = st.lists(
    st.sampled_from(
        [
            Taint("hub.jupyter.org/dedicated", "user", "NoSchedule"),
            Taint("nvidia.com/gpu", "", "NoSchedule"),
        ]
    )
)
OVERRIDES = st.fixed_dictionaries(
    {},
    optional={
        "node_selector": st.dictionaries(
            st.sampled_from(["pool", "zone"]), st.sampled_from(["a", "gpu", None])
        ),
        "tolerations": st.lists(st.sampled_from([GPU, USERS]), max_size=2),
        "node_affinity_required": st.lists(st.sampled_from([ON_USER_NODES, IN_A_ZONE]), max_size=2),
    },
)


@given(overrides=st.lists(OVERRIDES, max_size=4), labels=LABELS, taints=TAINTS, base=OVERRIDES)
def test_an_image_is_brought_to_every_node_that_its_users_may_use(
    overrides: list[Values], labels: dict[str, str], taints: list[Taint], base: Values
) -> None:
    users: Values = {
        "node_selector": {
            key: value for key, value in base.get("node_selector", {}).items() if value
        },
        "tolerations": base.get("tolerations", []),
        "node_affinity_required": base.get("node_affinity_required", []),
    }
    values = singleuser(
        *(profile(f"image-{index}:1", **override) for index, override in enumerate(overrides)),
        nodeSelector=users["node_selector"],
        extraTolerations=users["tolerations"],
        extraNodeAffinity={"required": users["node_affinity_required"]},
    )
    pullers = [
        Puller(
            group.component,
            group.node_selector,
            tuple(managed_image("hub", "jhub", image) for image in group.images),
            read_node_terms(group.required_terms) if group.required_terms else None,
            read_tolerations(group.tolerations),
        )
        for group in puller_groups(values, {"tolerations": [USERS]})
    ]
    node = Node(name="node", labels=labels, taints=tuple(taints), unschedulable=False, ready=True)
    there = {
        image.reference
        for puller in pullers
        if selects(puller, "node", labels)
        and untolerated(tuple(taints), puller.tolerations or ()) is None
        for image in puller.images
    }
    # The controllers ask for no image that isn't brought, where any is.
    assert not there or there == {
        image.reference for puller in serving(pullers, node) for image in puller.images
    }
    for index, override in enumerate([{}, *overrides]):
        rules = {**users, **override, "node_selector": _merged(users["node_selector"], override)}
        terms = rules["node_affinity_required"]
        is_admitted = (
            rules["node_selector"].items() <= labels.items()
            and (
                not terms
                or any(node_term_matches(term, "node", labels) for term in read_node_terms(terms))
            )
            and untolerated(tuple(taints), read_tolerations([USERS, *rules["tolerations"]])) is None
        )
        assert not is_admitted or (f"image-{index - 1}:1" if index else DEFAULT) in there


def _merged(selector: Values, override: Values) -> Values:
    merged = {**selector, **override.get("node_selector", {})}
    return {key: value for key, value in merged.items() if value is not None}


DEFAULT, GPU_IMAGE = "quay.io/o/default:1", "quay.io/o/gpu:1"
USER = Taint("hub.jupyter.org/dedicated", "user", "NoSchedule")
GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
# zero-to-jupyterhub's own recipe: an extended resource, no node selector.
RECIPE = {"image": GPU_IMAGE, "extra_resource_limits": {"nvidia.com/gpu": "1"}}


def gate(override: dict[str, Any] | None = None, **singleuser: Any) -> GateSettings:
    """What the controllers read of a hub with one GPU_TAINT profile."""
    profiles = [{"kubespawner_override": RECIPE if override is None else override}]
    values = {
        "singleuser": {
            "image": {"name": "quay.io/o/default", "tag": "1"},
            "profileList": profiles,
            **singleuser,
        }
    }
    read = Reader()
    settings = read_gate(ReleaseDocument(read, release_document(values, "hub")))
    assert read.faults == []
    return settings


def node(*taints: Taint, **labels: str) -> Node:
    return Node(name="node", labels=labels, taints=taints, unschedulable=False, ready=True)


def images(settings: GateSettings, at: Node) -> list[str]:
    return [image.reference for image in settings.images_for(at)]


def test_a_tainted_gpu_node_gets_the_images_of_those_who_may_use_it_and_no_others() -> None:
    there = node(USER, GPU_TAINT)
    assert images(gate(), there) == [GPU_IMAGE]
    assert gate().taint_against_pullers(there) is None


def test_a_node_that_no_puller_tolerates_lacks_what_belongs_there_and_the_taint_is_told() -> None:
    settings = gate({"image": GPU_IMAGE})
    assert images(settings, node(GPU_TAINT)) == [DEFAULT, GPU_IMAGE]
    assert settings.taint_against_pullers(node(GPU_TAINT)) == GPU_TAINT


def test_every_puller_tolerates_the_startup_taint_and_what_all_daemon_pods_do() -> None:
    not_ready = Taint("node.kubernetes.io/not-ready", "", "NoExecute")
    joining = node(USER, Taint(startup_taint("hub", "hub"), "", "NoSchedule"), not_ready)
    assert gate().taint_against_pullers(joining) is None
    assert images(gate(), joining) == [DEFAULT, GPU_IMAGE]
