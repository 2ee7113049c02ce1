"""A pod as its author sends it: its JSON, which is read and never changed.

Null and absent are the same. Only what is needed is checked. If that has a wrong type,
`MalformedObjectError` names the place. It never contains the value, which may be secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from roost_core.objects import fields
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.objects.remembering import ByJSON
from roost_core.objects.selectors import NodeRules, read_node_rules

# The annotation of a pod that a kubelet read from a file.
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
# Remembered, because most pods of a hub have the same rules, and reading them takes time.
_node_rules: Final[ByJSON[NodeRules]] = ByJSON()


class PodBody(NamedTuple):
    """A pod's JSON, read as far as a review needs it.

    `body` and `spec` are the caller's own objects: read-only.
    """

    body: fields.JSONObject
    spec: fields.JSONObject
    # The request's namespace: a pod's own metadata.namespace may be absent.
    namespace: str
    # "" until the API server has generated one from generateName.
    name: str
    generate_name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    scheduler_name: str
    node_name: str
    containers: list[fields.JSONObject]
    init_containers: list[fields.JSONObject]
    affinity: fields.JSONObject
    node_affinity: fields.JSONObject
    # None: no required node affinity.
    required_node_terms: list[Any] | None
    preferred_node_terms: list[Any]
    # Preferred terms by `podAffinity` and `podAntiAffinity`; a key that the pod lacks is absent.
    preferred_pod_terms: Mapping[str, list[Any]]

    @property
    def tolerations(self) -> list[Any]:
        """`spec.tolerations` as written."""
        return fields.child_list(self.spec, "tolerations", "spec") or []

    @property
    def node_selector(self) -> fields.JSONObject:
        """The labels that its node must have, as written."""
        return fields.child_object(self.spec, "nodeSelector", "spec") or fields.NOTHING

    @property
    def is_daemon(self) -> bool:
        """Whether a DaemonSet owns it.

        Its node affinity wouldn't show that: a hub may bind a user to a node by the same term.
        """
        metadata = fields.child_object(self.body, "metadata", "object") or fields.NOTHING
        for owner in fields.child_list(metadata, "ownerReferences", "metadata") or ():
            if type(owner) is not dict or owner.get("controller") is not True:
                continue
            if owner.get("kind") == "DaemonSet":
                return True
        return False

    @property
    def rules(self) -> NodeRules:
        """What this pod requires of its node."""
        spec = self.spec
        parts = (spec.get("nodeSelector"), self.required_node_terms, spec.get("tolerations"))
        return _node_rules(parts, self._read_rules)

    def _read_rules(self) -> NodeRules:
        return read_node_rules(
            fields.child_texts(self.spec, "nodeSelector", "spec"),
            self.required_node_terms,
            self.tolerations,
        )

    @property
    def images(self) -> list[str]:
        """References of all images as written, main containers first."""
        references = []
        for container in (*self.containers, *self.init_containers):
            image = container.get("image")
            if type(image) is str and image:
                references.append(image)
        return references


def read_pod_body(body: object, namespace: str) -> PodBody:
    """Read a pod from an admission request.

    Raises MalformedObjectError, and nothing else, whatever `body` is.
    """
    if type(body) is not dict:
        raise fields.MalformedObjectError("the object is not a JSON object")
    if body.get("kind") not in (None, "Pod"):
        raise fields.MalformedObjectError("the object's kind is not Pod")
    metadata = fields.child_object(body, "metadata", "object")
    if metadata is None:
        metadata = fields.NOTHING
    spec = fields.child_object(body, "spec", "object")
    if spec is None:
        raise fields.MalformedObjectError("the pod has no spec")
    affinity = fields.child_object(spec, "affinity", "spec") or fields.NOTHING
    node_affinity = fields.child_object(affinity, "nodeAffinity", "spec.affinity") or fields.NOTHING
    where = "spec.affinity.nodeAffinity"
    required = fields.child_object(node_affinity, REQUIRED, where)
    terms = None
    if required is not None:
        terms = fields.child_list(required, "nodeSelectorTerms", f"{where}.required") or []
    pod_terms = {}
    if affinity:
        for branch in ("podAffinity", "podAntiAffinity"):
            pod_affinity = fields.child_object(affinity, branch, "spec.affinity")
            if pod_affinity is not None:
                pod_terms[branch] = (
                    fields.child_list(pod_affinity, PREFERRED, f"spec.affinity.{branch}") or []
                )
    return PodBody(
        body=body,
        spec=spec,
        namespace=namespace,
        name=fields.child_text(metadata, "name", "metadata"),
        generate_name=fields.child_text(metadata, "generateName", "metadata"),
        labels=fields.child_texts(metadata, "labels", "metadata"),
        annotations=fields.child_texts(metadata, "annotations", "metadata"),
        scheduler_name=fields.child_text(spec, "schedulerName", "spec"),
        node_name=fields.child_text(spec, "nodeName", "spec"),
        containers=fields.child_objects(spec, "containers", "spec"),
        init_containers=fields.child_objects(spec, "initContainers", "spec"),
        affinity=affinity,
        node_affinity=node_affinity,
        required_node_terms=terms,
        preferred_node_terms=fields.child_list(node_affinity, PREFERRED, where) or [],
        preferred_pod_terms=pod_terms,
    )
