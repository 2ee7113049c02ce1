"""An imported placeholder is as large as the pod that the real KubeSpawner makes of a user."""

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.importing.importer import import_layers
from generator.values.lookups import listing
from roost_core.objects.quantities import parse_quantity
from tests.chart_spawner import real_pods
from tests.plain_requests import of_container, of_pod

RESOURCES = ("cpu", "memory", "example.com/gpu")
CPU = st.integers(1, 40).map(lambda tens: f"{tens}0m")
MEMORY = st.integers(1, 9).map(lambda count: f"{count * 256}Mi")
DEVICES = st.integers(1, 3).map(str)
AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": CPU, "memory": MEMORY, "example.com/gpu": DEVICES}
)


@st.composite
def containers(draw: st.DrawFn, *, of_init: bool) -> list[dict[str, Any]]:
    """Further containers of a pod, with requests or with limits alone; of init containers, some
    are sidecars.
    """
    found: list[dict[str, Any]] = []
    for place in range(draw(st.integers(0, 3))):
        part = draw(st.sampled_from(["requests", "limits"]))
        container = {"name": f"c{place}", "image": "c:1", "resources": {part: draw(AMOUNTS)}}
        if of_init and draw(st.booleans()):
            container["restartPolicy"] = "Always"
        found.append(container)
    return found


@st.composite
def hubs(draw: st.DrawFn) -> dict[str, Any]:
    """Values of a hub whose users' pods hold further containers, by the chart's keys or by the
    default profile's.
    """
    mains = draw(containers(of_init=False))
    inits = draw(containers(of_init=True))
    memory = draw(st.sampled_from([{"guarantee": "1G"}, {"guarantee": None, "limit": "2G"}]))
    singleuser: dict[str, Any] = {
        "image": {"name": "a/b", "tag": "1"},
        "memory": memory,
        "cpu": draw(st.sampled_from([{}, {"guarantee": 0.25}])),
        "extraContainers": mains,
        "initContainers": inits,
    }
    if draw(st.booleans()):
        override = {"init_containers": draw(containers(of_init=True))}
        profile = {"display_name": "p", "kubespawner_override": override}
        singleuser["profileList"] = [profile]
    return {"singleuser": singleuser, "scheduling": {"userPlaceholder": {"replicas": 1}}}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hubs())
def test_a_placeholder_requests_what_the_users_whole_pod_does(hub: dict[str, Any]) -> None:
    (user,) = real_pods(hub, "hub-user-scheduler")
    result = import_layers([("hub.yaml", yaml.safe_dump(hub))])
    # Of two sets, the last is for the default profile.
    entry: Any = listing(result.values["placeholders"])[-1]
    room = {"resources": entry["resources"]}
    for resource in RESOURCES:
        asked = of_pod(user.pod["spec"], resource)
        assert of_container(room, resource) == asked, (resource, entry, user.pod["spec"])
    for name, limit in entry["resources"].get("limits", {}).items():
        assert parse_quantity(limit) >= of_container(room, name)
