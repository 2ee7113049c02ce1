"""What `roost doctor` says of other hubs on this hub's nodes, and of zero-to-jupyterhub's parts
that Roost replaces.
"""

import pytest

from roost.doctor.checks import BEFORE, run_checks
from roost_core.objects.fields import JSONObject
from tests.unit.doctor.whole_cluster import APPS, PLACED, USER, Cluster, found

NAMESPACES, PODS = "/api/v1/namespaces", "/api/v1/pods"
POOL = "sharedPools: {namespaceSelector: {matchLabels: {pool: users}}}\n"
ONE_RELEASE = "podClasses: {user: {match: {namespaceSelector: {matchLabels: {pool: users}}}}}\n"


def user(namespace: str, node: str, labels: dict[str, str] | None = None) -> JSONObject:
    metadata = {
        "name": "jupyter-ada",
        "namespace": namespace,
        "labels": USER if labels is None else labels,
    }
    metadata |= {"annotations": PLACED}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


def together(values: str = "", **pools: str) -> Cluster:
    """A hub whose user shares a node with one of physics; pools: labels of namespaces."""
    cluster = Cluster(values)
    labels = {"jhub": "", "physics": "", **pools}
    cluster.lists[NAMESPACES] = [
        {"metadata": {"name": name, "labels": {"pool": label} if label else {}}}
        for name, label in labels.items()
    ]
    cluster.lists[PODS] = [
        user("jhub", "a"),
        user("physics", "a"),
        user("physics", "b"),
        user("far", "c"),
    ]
    return cluster


@pytest.mark.parametrize("stage", ["installed", "before"])
def test_users_of_another_hub_on_the_same_node_are_told_with_both_ways_to_join_them(
    stage: str,
) -> None:
    cluster = together()
    said = (
        cluster.said("hubs")
        if stage == "installed"
        else found(run_checks(cluster.install, BEFORE), "hubs")
    )
    ((severity, evidence, fix, *_),) = said
    assert (severity, "physics (1)" in evidence, "far" in evidence) == ("warning", True, False)
    assert "podClasses.user.match.namespaceSelector" in fix
    assert "sharedPools.namespaceSelector" in fix


@pytest.mark.parametrize("values", [POOL, ONE_RELEASE])
def test_hubs_that_are_joined_are_fine_and_one_that_is_left_out_is_told(values: str) -> None:
    assert together(values, jhub="users", physics="users").said("hubs") == []
    ((_, evidence, fix, *_),) = together(values, jhub="users").said("hubs")
    assert "physics (1)" in evidence
    assert fix.startswith("Label these namespaces as ")
    assert fix.removesuffix(" asks.").rpartition(" ")[2].split(".")[0] in values


def test_pods_without_a_node_and_pods_of_other_kinds_are_nobodys_users() -> None:
    cluster = together()
    cluster.lists[PODS] = [
        user("jhub", "a"),
        user("physics", ""),
        user("physics", "a", {"component": "hub"}),
    ]
    assert cluster.said("hubs") == []


def test_users_of_all_hubs_of_a_release_are_seen_and_a_pod_is_tried_in_a_hubs_namespace() -> None:
    missed = user("physics", "a")
    missed["metadata"]["annotations"] = {}
    cluster = together(ONE_RELEASE, physics="users")
    cluster.lists[PODS] = [missed, user("biology", "a", {"component": "hub"})]
    cluster.tells("users", "warning", "1 of 1 users' pods were made without Roost: jupyter-ada.")
    none = "podClasses.user.match.namespaceSelector selects no namespace"
    together(ONE_RELEASE).tells("admission", "warning", none)
    together(POOL, physics="users").tells(
        "hubs", "warning", "doesn't select the hub's own namespace jhub"
    )


LISTED = (
    "singleuser: {image: {name: a/b, tag: '1'}}\nplaceholders: [{name: default, replicas: 3}]\n"
)
PARTS = {
    "user-scheduler": ("deployments", "scheduling.userScheduler.enabled: false"),
    "user-placeholder": ("statefulsets", "scheduling.userPlaceholder.replicas: 0"),
    "continuous-image-puller": (
        "daemonsets",
        "prePuller.continuous.enabled: false    # Roost's puller does this",
    ),
}


def part(component: str, **spec: int) -> JSONObject:
    labels = {"app": "jupyterhub", "component": component}
    return {"metadata": {"name": component, "namespace": "jhub", "labels": labels}, "spec": spec}


@pytest.mark.parametrize("component", PARTS)
def test_each_part_of_the_hubs_chart_that_still_runs_is_told_with_its_switch(
    component: str,
) -> None:
    cluster = Cluster(LISTED)
    resource, switch = PARTS[component]
    cluster.lists[f"{APPS}/{resource}"] = [part(component), part("hub")]
    evidence = f"jhub/{component} of zero-to-jupyterhub still runs"
    cluster.tells(
        "switches", "warning", evidence, fix=f"such as jupyterhub, where it has one): {switch}"
    )


def test_parts_that_are_off_or_that_nothing_of_roosts_replaces_are_fine() -> None:
    cluster = Cluster(LISTED)
    cluster.lists[f"{APPS}/statefulsets"] = [part("user-placeholder", replicas=0)]
    assert cluster.said("switches") == []
    cluster = Cluster(
        "scheduler: {target: none}\nprePuller: {enabled: false}\nimageGate: {mode:"
        " 'off'}\nplaceholders: []"
    )
    for component, (resource, _) in PARTS.items():
        cluster.lists[f"{APPS}/{resource}"] = [part(component)]
    assert cluster.said("switches") == []
