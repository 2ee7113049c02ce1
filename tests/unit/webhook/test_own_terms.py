"""Whom the second profile beside each that packs is for: authors whose pods avoid others."""

from dataclasses import replace

from roost_core.objects.pod import PREFERRED
from roost_core.objects.pod_reader import read_pod
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import read_profiles
from roost_core.scheduler.state import ClusterState
from tests.builders import Desk, facts, settings, user_pod
from tests.builders import pod as pod_body
from tests.mover_world import MoverWorld


def test_a_pod_keeps_away_from_whom_its_author_named_though_their_node_is_fuller() -> None:
    world = MoverWorld(placeholders=0)
    for name in ("fuller", "emptier"):
        world.add_node(name, cpu="4")
    state = ClusterState()
    for node in world.nodes.values():
        state.set_node(node)
    requests = {"cpu": "3500m", "memory": "8Gi"}
    containers = [{"name": "main", "image": "x:1", "resources": {"requests": requests}}]
    noisy = pod_body({"noisy": "true"}, {"nodeName": "fuller", "containers": containers})
    state.add_pod(read_pod(noisy))
    term = {
        "labelSelector": {"matchLabels": {"noisy": "true"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    body = user_pod(affinity={"podAntiAffinity": {PREFERRED: preferred}})
    packing = settings(scheduler={"profiles": {"user": {"strategy": "pack"}}})
    pod = read_pod(Desk(packing, facts(*world.nodes.values())).place(body))
    profiles = read_profiles(world.configuration, NEWEST_MINOR)

    def node_under(profile: str) -> str | None:
        named = replace(pod, scheduler_name=f"hub.jhub.{profile}")
        return schedule(named, state, profiles[named.scheduler_name]).node

    assert pod.scheduler_name == "hub.jhub.user_strict"
    assert node_under("user_strict") == "emptier"
    assert node_under("user") == "fuller", "packing decides there"
