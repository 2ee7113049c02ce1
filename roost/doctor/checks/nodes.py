"""No node's labels say for long that it is pulling an image."""

from roost.doctor.conditions import State, conditions
from roost.doctor.evidence import age_seconds, count, labelled, node_age_seconds, path_of, some
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.objects.node import Node
from roost_core.placement.kubelet_pulls import LONGEST_PULL_SECONDS
from roost_core.placement.labels import PULLING, pulled_prefix


def check(install: Install) -> CheckReport:
    prefix = pulled_prefix(install.release.name, install.release.namespace)
    yield count(len(install.nodes), "node")
    pulling = [node for node in install.nodes if _is_pulling(node, prefix)]
    pulling_for_long = [
        node for node in pulling if node_age_seconds(install, node) > LONGEST_PULL_SECONDS
    ]
    if not pulling_for_long:
        return
    recent = _nodes_with_recent_puller_pods(install)
    overdue = [node.name for node in pulling_for_long if node.name not in recent]
    # After a change of a puller, its DaemonSet serves one node after the other.
    if overdue and not _has_changed(install):
        yield warning(
            f"{count(len(overdue), 'node')} without an image that users need, for more than"
            f" {LONGEST_PULL_SECONDS / 60:.0f} minutes: {some(overdue)}.",
            "kubectl describe node shows Roost's Events. Does the puller run there, and can the"
            " node pull it?",
            follows=conditions(State.UNLED, "controllers") | conditions(State.BROKEN, "puller"),
        )


def _is_pulling(node: Node, prefix: str) -> bool:
    """Whether a label of the node, with this prefix, says that the node is pulling an image."""
    return any(key.startswith(prefix) and value == PULLING for key, value in node.labels.items())


def _nodes_with_recent_puller_pods(install: Install) -> set[str]:
    """Names of nodes whose puller's pod is younger than the longest pull."""
    selectors = [body["spec"]["selector"]["matchLabels"] for body in install.of_kind("DaemonSet")]
    return {
        str(pod["spec"].get("nodeName"))
        for selector in selectors
        for pod in labelled(install.pods, selector)
        if _is_recent(install, pod["metadata"].get("creationTimestamp"))
    }


def _has_changed(install: Install) -> bool:
    """Whether the spec of a puller was written within the time of the longest pull."""
    for body in install.of_kind("DaemonSet"):
        live = install.client.find(path_of(body)) or {}
        entries = (live.get("metadata") or {}).get("managedFields") or []
        for entry in entries:
            is_spec = "f:spec" in (entry.get("fieldsV1") or {}) and not entry.get("subresource")
            if is_spec and _is_recent(install, entry.get("time")):
                return True
    return False


def _is_recent(install: Install, time: str | None) -> bool:
    """Whether a timestamp of the cluster is younger than the longest pull."""
    age = age_seconds(install, time)
    return age is not None and age <= LONGEST_PULL_SECONDS
