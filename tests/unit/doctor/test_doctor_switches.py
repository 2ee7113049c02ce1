"""What `roost doctor` says of zero-to-jupyterhub's parts that Roost replaces."""

import pytest

from tests.unit.doctor.whole_cluster import APPS, Cluster, Object

LISTED = "singleuser: {image: {name: a/b, tag: '1'}}\nplaceholders: [{name: default, replicas: 3}]\n"
PARTS = {
    "user-scheduler": ("deployments", "scheduling.userScheduler.enabled: false"),
    "user-placeholder": ("statefulsets", "scheduling.userPlaceholder.replicas: 0"),
    "continuous-image-puller": ("daemonsets", "prePuller.continuous.enabled: false    # Roost's puller does this"),
}


def part(component: str, **spec: int) -> Object:
    labels = {"app": "jupyterhub", "component": component}
    return {"metadata": {"name": component, "namespace": "jhub", "labels": labels}, "spec": spec}


@pytest.mark.parametrize("component", PARTS)
def test_each_part_of_the_hubs_chart_that_still_runs_is_told_with_its_switch(component: str) -> None:
    cluster = Cluster(LISTED)
    resource, switch = PARTS[component]
    cluster.lists[f"{APPS}/{resource}"] = [part(component), part("hub")]
    cluster.tells(
        "switches",
        "warning",
        f"jhub/{component} of zero-to-jupyterhub still runs",
        fix=f"In the hub's values: {switch}",
    )


def test_parts_that_are_off_or_that_nothing_of_roosts_replaces_are_fine() -> None:
    cluster = Cluster(LISTED)
    cluster.lists[f"{APPS}/statefulsets"] = [part("user-placeholder", replicas=0)]
    assert cluster.said("switches") == []
    cluster = Cluster(
        "scheduler: {target: none}\nprePuller: {enabled: false}\nimageGate: {mode: 'off'}\nplaceholders: []"
    )
    for component, (resource, _) in PARTS.items():
        cluster.lists[f"{APPS}/{resource}"] = [part(component)]
    assert cluster.said("switches") == []
