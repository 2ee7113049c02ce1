"""What pods of one namespace say changes of what others get only which nodes are preferred, of
those there are.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings

from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import PREFERRED
from tests.builders import IMAGE, Desk, build_pod, user_pod
from tests.properties.controllers.test_isolation import (
    DOCUMENT,
    HUBS,
    NODES,
    OF_OTHERS,
    hostile_pods,
    moved_to,
)
from tests.unit.webhook.test_server_facts import FakeServer, Kept
from webhook.webhook_settings import parse_settings

RULES = parse_settings(DOCUMENT, "revision0001")


class Cluster(FakeServer):
    """Nodes, namespaces and the pods that a selector of labels chooses."""

    def __init__(self, pods: Sequence[JSONObject]) -> None:
        super().__init__()
        self._pods = [*OF_OTHERS, *pods]
        ready = {"type": "Ready", "status": "True"}
        allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        status = {
            "conditions": [ready],
            "allocatable": allocatable,
            "images": [{"names": [IMAGE], "sizeBytes": 1}],
        }
        nodes = [
            {
                "metadata": {
                    "name": name,
                    "uid": name,
                    "creationTimestamp": f"2027-01-15T0{index}:00:00Z",
                },
                "status": status,
            }
            for index, name in enumerate(NODES)
        ]
        names = [{"metadata": {"name": name, "labels": labels}} for name, labels in HUBS.items()]
        self.objects |= {("/api/v1/nodes", ""): nodes, ("/api/v1/namespaces", ""): names}

    def get(self, path: str, query: Mapping[str, Any]) -> JSONObject:
        if path == "/api/v1/pods" and (selector := str(query.get("labelSelector", ""))):
            wanted = dict(part.split("=", 1) for part in selector.split(","))
            chosen = [
                pod
                for pod in self._pods
                if wanted.items() <= pod["metadata"].get("labels", {}).items()
            ]
            self.objects[path, selector] = chosen
        return super().get(path, query)


def stored(pods: Sequence[JSONObject]) -> list[JSONObject]:
    """Others' pods as they are stored, once the webhook has seen these pods; each answer must be a
    plain `allowed`.
    """
    kept = Kept(Cluster(pods))
    try:
        kept.keeper.follow(RULES)
        kept.wait(lambda: kept.keeper.readiness().passed and bool(kept.keeper.facts.warm))
        desk = Desk(RULES, kept.keeper.facts)
        return [desk.place(user_pod(), "good"), desk.place(user_pod()), desk.place(build_pod())]
    finally:
        kept.stop.set()
        kept.thread.join()


def without_preferences(pod: JSONObject) -> JSONObject:
    """A pod's node preferences are taken out, and the note of what was chosen."""
    copied: JSONObject = json.loads(json.dumps(pod))
    copied["spec"].get("affinity", {}).get("nodeAffinity", {}).pop(PREFERRED, None)
    del copied["metadata"]["annotations"]
    return copied


BEFORE = stored([])


@settings(max_examples=20)
@given(hostile_pods())
def test_a_strangers_pods_change_nothing_and_a_hubs_only_which_nodes_are_preferred(
    pods: list[JSONObject],
) -> None:
    assert stored(moved_to(pods, "stranger")) == BEFORE
    after = stored(pods)
    assert list(map(without_preferences, after)) == list(map(without_preferences, BEFORE))
    for pod in after:
        for term in pod["spec"]["affinity"].get("nodeAffinity", {}).get(PREFERRED, []):
            for field in term["preference"].get("matchFields", []):
                assert set(field["values"]) <= {*NODES}
