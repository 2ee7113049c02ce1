"""Helpers of several checks: what objects say, and how they are named to people. What is read of
the cluster is `Install`, in install.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from generator import faults
from generator.importing.quantities import memory_quantity
from roost.doctor.findings import Finding, unknown
from roost.doctor.install import Install
from roost_core.kube.client import ApiError, list_all
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.objects.requests import CPU, MEMORY
from roost_core.objects.selectors import Requirement, read_label_selector
from roost_core.placement.labels import USER_CLASS
from roost_core.release.class_of_pod import namespace_matches

count = faults.count_of
some = faults.some
# Classes of which a pod is made up and tried.
TRIED: Final = (USER_CLASS, "build")
# kube-scheduler's configuration in its ConfigMap.
CONFIG_KEY: Final = "config.yaml"
# The most lines of a log that are read.
_LOG_LINES: Final = 500
# How long a log may be silent while it is read.
SILENCE_SECONDS: Final = 15.0
# Characters that are told of a log's line.
LINE_LENGTH: Final = 300
AUTOSCALER_STATUS: Final = "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"
NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
# As docs/start-notices.md has it: BinderHub's chart, and charts around zero-to-jupyterhub's, have a
# key of its own.
HUB_VALUES: Final = (
    "In the hub's values (below the key of its chart, such as jupyterhub, where it has one)"
)
# Besides Roost's, a webhook may name a pod's scheduler.
OTHER_WEBHOOK: Final = "another webhook chose it (`kubectl get mutatingwebhookconfigurations`)"
GKE_SCHEDULER: Final = "gke.io/optimize-utilization-scheduler"


def now_seconds(install: Install) -> float:
    """Seconds since 1970 by the API server's clock: this machine's may be minutes off."""
    return datetime.now(UTC).timestamp() + install.client.clock_difference()


def age_seconds(install: Install, time: str | None) -> float | None:
    """Seconds since a time as Kubernetes writes it; None: not known."""
    try:
        return now_seconds(install) - datetime.fromisoformat(time or "").timestamp()
    except ValueError:
        return None


def show_amount(resource: str, amount: int) -> str:
    """An amount as values have it. amount: of CPU thousandths, of memory bytes."""
    if resource == CPU:
        return f"{amount}m"
    if resource == MEMORY:
        return memory_quantity(amount)
    return str(amount)


def node_age_seconds(install: Install, node: Node) -> float:
    """Seconds since a node was created; 0.0: not known."""
    return now_seconds(install) - node.created if node.created else 0.0


def users_of(install: Install) -> list[JSONObject]:
    """The users' pods of the release, of all hubs that it serves."""
    return pods_in_class(install, install.values["podClasses"].get(USER_CLASS))


def pods_in_class(install: Install, pod_class: Any) -> list[JSONObject]:  # noqa: ANN401 - a part of the values
    """The pods that a class's labels select, of all hubs that the release serves."""
    labels = labels_of(pod_class)
    required = selector_of(pod_class)
    pods = install.pods if required is None else _within(install, required, install.pods_everywhere)
    return labelled(pods, labels) if labels else []


def labelled(pods: Iterable[JSONObject], labels: Mapping[str, str]) -> list[JSONObject]:
    """The pods that have all these labels."""
    return [pod for pod in pods if labels.items() <= label_items(pod).items()]


def listed(install: Install, pod_class: Any, api: str, resource: str) -> list[JSONObject]:  # noqa: ANN401 - a part of values
    """The objects of a kind in the namespaces whose pods a class selects; api: as /apis/apps/v1."""
    required = selector_of(pod_class)
    if required is None:
        path = f"{api}/namespaces/{install.release.namespace}/{resource}"
        return list(list_all(install.client, path))
    return _within(install, required, list_all(install.client, f"{api}/{resource}"))


def _within(
    install: Install, required: frozenset[Requirement], bodies: Iterable[JSONObject]
) -> list[JSONObject]:
    """The objects in namespaces that are selected."""
    names = {
        name for name in install.namespaces if namespace_matches(required, name, install.namespaces)
    }
    return [body for body in bodies if body["metadata"].get("namespace") in names]


def namespace_of(install: Install, pod_class: Any) -> str:  # noqa: ANN401 - a part of the values
    """A namespace whose pods a class selects: the release's own if it does; "": none does."""
    required = selector_of(pod_class)
    if required is None:
        return install.release.namespace
    names = sorted(install.namespaces, key=lambda name: (name != install.release.namespace, name))
    return next(
        (name for name in names if namespace_matches(required, name, install.namespaces)), ""
    )


def selector_of(pod_class: Any) -> frozenset[Requirement] | None:  # noqa: ANN401 - a part of the values
    """What a class requires of namespaces; None: its pods are in the release's own."""
    selector = ((pod_class or {}).get("match") or {}).get("namespaceSelector")
    return None if selector is None else read_label_selector(selector)


def labels_of(pod_class: Any) -> dict[str, str]:  # noqa: ANN401 - a part of the values
    """The labels that pods of a class have."""
    return dict(((pod_class or {}).get("match") or {}).get("labels") or {})


def admits(install: Install) -> bool:
    """Whether the release changes pods at admission."""
    return bool(
        install.of_kind("MutatingWebhookConfiguration")
        or install.of_kind("MutatingAdmissionPolicy")
    )


def annotation_of(body: JSONObject, key: str) -> str:
    """An annotation of an object; empty without."""
    return str((body["metadata"].get("annotations") or {}).get(key, ""))


def label_items(body: JSONObject) -> dict[str, str]:
    """The labels of an object."""
    return dict(body["metadata"].get("labels") or {})


def mounts_images(install: Install) -> bool:
    """Whether the puller's pods mount images."""
    volumes = [
        body["spec"]["template"]["spec"].get("volumes") or []
        for body in install.of_kind("DaemonSet")
    ]
    return any("image" in volume for mounted in volumes for volume in mounted)


def autoscaler_words(deployment: JSONObject) -> list[str]:
    """The command line of a cluster-autoscaler; empty where a Deployment is something else."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        words = [*(container.get("command") or []), *(container.get("args") or [])]
        if "cluster-autoscaler" in " ".join([container.get("image", ""), *words]):
            return words or [""]
    return []


def config_map_of(install: Install, deployment: JSONObject | None) -> JSONObject | None:
    """The rendered ConfigMap with the name of a Deployment."""
    name = deployment["metadata"]["name"] if deployment is not None else None
    return next(
        (body for body in install.of_kind("ConfigMap") if body["metadata"]["name"] == name), None
    )


def read_profiles(config_map: JSONObject) -> dict[str, Any]:
    """The profiles of a scheduler's rendered ConfigMap, by schedulerName."""
    return {
        profile["schedulerName"]: profile
        for profile in yaml.safe_load(config_map["data"][CONFIG_KEY])["profiles"]
    }


def log_lines(install: Install, pod: str, container: str, span: Mapping[str, Any]) -> list[str]:
    """The last lines of a container's log.

    span: which part, as the API has it: {"previous": True} for the container before this one,
    {"sinceSeconds": 60} for the last minute, {} for all of it.

    Raises ApiError: nobody may read it, or nobody has it.
    """
    path = f"/api/v1/namespaces/{install.release.namespace}/pods/{pod}/log"
    lines = install.client.lines(
        path, {"container": container, "tailLines": _LOG_LINES, **span}, SILENCE_SECONDS
    )
    return [text for line in lines if (text := line.decode(errors="replace").rstrip())]


def unreadable_log(pod: str, error: ApiError) -> Finding:
    """What is said of a log that can't be read."""
    fix = f"kubectl logs --previous {pod} may still have what an earlier container said."
    if error.status in (401, 403):
        fix = "Run it with an account that may get pods/log, or read it yourself."
    return unknown(f"The log of pod {pod} can't be read: {error}", fix)


def is_strangers_scheduler(install: Install, scheduler: str) -> bool:
    """Whether a pod names neither Roost's scheduler nor GKE's, of which check platform tells."""
    own = f"{install.release.name}.{install.release.namespace}."
    return not scheduler.startswith(own) and scheduler != GKE_SCHEDULER


def advice_for_schedulers(install: Install, schedulers: Sequence[str]) -> str:
    """What to do so that Roost's scheduler takes pods that name these: what the values don't have
    yet.
    """
    for other in other_webhooks(install):
        labels = label_items(other)
        start = f"{labels.get('app.kubernetes.io/instance', '')}.{_namespace_of_webhook(other)}."
        if any(scheduler.startswith(start) for scheduler in schedulers):
            return (
                f"It is the scheduler of another release of Roost ({name_of(other)}): leave such"
                " pods to it."
            )
    if set(schedulers) <= set(install.values["replaceSchedulers"]):
        return (
            "replaceSchedulers has it already: these pods are older than that, or came while the"
            " webhook was away."
        )
    return f"To have Roost's take such pods: replaceSchedulers: [{', '.join(schedulers)}]."


def other_webhooks(install: Install) -> list[JSONObject]:
    """Webhook configurations of other releases of Roost. Raises ClusterError."""
    own = {body["metadata"]["name"] for body in install.of_kind("MutatingWebhookConfiguration")}
    return [
        body
        for body in install.webhook_configurations
        if label_items(body).get("app.kubernetes.io/part-of") == "roost"
        and body["metadata"]["name"] not in own
    ]


def _namespace_of_webhook(body: JSONObject) -> str:
    """The namespace of the Service that a webhook configuration names; "": it names none."""
    for entry in body.get("webhooks") or []:
        service = (entry.get("clientConfig") or {}).get("service")
        if service:
            return str(service.get("namespace", ""))
    return ""


def path_of(body: JSONObject) -> str:
    """The path of a rendered object, as /apis/apps/v1/namespaces/hub/deployments/roost-webhook."""
    return f"{collection_of(body)}/{body['metadata']['name']}"


def collection_of(body: JSONObject) -> str:
    """The path of the collection that a rendered object belongs to."""
    version = body["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = body["metadata"].get("namespace")
    return (
        f"{root}/namespaces/{namespace}/{plural(body['kind'])}"
        if namespace
        else f"{root}/{plural(body['kind'])}"
    )


def plural(kind: str) -> str:
    """The resource of a kind that Roost renders: networkpolicies of NetworkPolicy."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def name_of(body: JSONObject) -> str:
    """A rendered object for people: Deployment hub/roost-webhook."""
    namespace = body["metadata"].get("namespace")
    name = body["metadata"]["name"]
    return f"{body['kind']} {namespace}/{name}" if namespace else f"{body['kind']} {name}"
