"""The StatefulSets of placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import StatefulSetState
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import label_selector
from roost_core.kube.watches import Watched, Watches
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import CONTROLLERS_MANAGER, OWN_PART, PART_OF_LABEL


class WatchedStatefulSets(Watched[StatefulSetState]):
    """Roost's own StatefulSets in the release's namespace."""

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(
            watches.add(
                ListWatch(
                    f"/apis/apps/v1/namespaces/{release.namespace}/statefulsets",
                    read_stateful_set,
                    kind="statefulsets",
                    label_selector=label_selector({PART_OF_LABEL: OWN_PART}),
                )
            )
        )

    @property
    def by_name(self) -> Mapping[str, StatefulSetState]:
        """`Snapshot.stateful_sets`."""
        return {stateful_set.name: stateful_set for stateful_set in self.objects().values()}


def read_stateful_set(body: JSONObject) -> StatefulSetState:
    """Read a StatefulSet of placeholders. body: the object as parsed from JSON."""
    replicas = body["spec"].get("replicas")
    status = body.get("status") or {}
    pod = (body["spec"].get("template") or {}).get("spec") or {}
    containers = pod.get("containers") or [{}]
    return StatefulSetState(
        name=body["metadata"]["name"],
        uid=body["metadata"].get("uid") or "",
        replicas=1 if replicas is None else int(replicas),
        is_rolling=_is_rolling(body["metadata"], status),
        is_scaled_by_us=_is_scaled_by_us(body["metadata"]),
        resources=containers[0].get("resources") or {},
        priority_class=pod.get("priorityClassName") or "",
    )


def _is_scaled_by_us(metadata: JSONObject) -> bool:
    """Whether `spec.replicas` is the number that controllers wrote last, by `managedFields`.

    False for the number 0: the API server doesn't note who wrote it.
    """
    for entry in metadata.get("managedFields") or ():
        spec_fields = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if entry.get("manager") == CONTROLLERS_MANAGER and "f:replicas" in spec_fields:
            return True
    return False


def _is_rolling(metadata: JSONObject, status: JSONObject) -> bool:
    """Whether its controller has yet to see the last change, or is rolling it out."""
    is_behind = int(status.get("observedGeneration") or 0) < int(metadata.get("generation") or 0)
    new_revision = status.get("updateRevision")
    is_updating = bool(new_revision) and new_revision != status.get("currentRevision")
    return is_behind or is_updating
