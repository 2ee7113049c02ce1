"""The checks of `roost doctor`, in the order in which one causes the next.

Each takes an Install, and returns what it looked at and its findings; it raises ClusterError where the API server
doesn't answer. Nothing is changed: pods are created with dryRun only.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from roost.doctor.findings import Finding, Outcome
from roost.doctor.install import collection_of, name_of, path_of
from roost_core.kube.client import ApiError, ClusterError
from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION, PULLING, pulled_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from roost.doctor.install import Install, Object

    Check = Callable[[Install], tuple[str, Iterator[Finding]]]

# A holder renews its Lease every few seconds; this long after, nobody does.
SILENT_SECONDS: Final = 60.0
# Names told of many objects.
SHOWN: Final = 3
# cluster-autoscaler's own default.
AUTOSCALER_CUTOFF: Final = -10
_CUTOFF: Final = re.compile(r"--expendable-pods-priority-cutoff[= ](-?\d+)")
_STUCK: Final = frozenset(
    {
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
    }
)


def run_checks(install: Install, checks: Sequence[tuple[str, Check]]) -> list[Outcome]:
    """Run each check; one that the API server refuses is unknown, and the others go on."""
    outcomes = []
    for name, check in checks:
        looked_at = ""
        findings: list[Finding] = []
        try:
            looked_at, found = check(install)
            findings.extend(found)
        except ClusterError as error:
            fix = "Run it with an account that may, or look there yourself." if _is_refused(error) else "Try again."
            findings.append(Finding("unknown", str(error), fix))
        outcomes.append(Outcome(name, looked_at, tuple(findings)))
    return outcomes


def check_version(install: Install) -> tuple[str, Iterator[Finding]]:
    """The cluster's Kubernetes is one that Roost is tested with."""
    minor = ".".join(map(str, install.release.kube_minor))
    tested = sorted(install.values["scheduler"]["image"]["tags"], key=_number)

    def find() -> Iterator[Finding]:
        if minor not in tested:
            yield Finding(
                "warning",
                f"Kubernetes {minor} is none of those that Roost is tested with: {', '.join(tested)}.",
                "Use a release of Roost that names it, or test yours before users do.",
            )

    return f"Kubernetes {minor}", find()


def check_rights(install: Install) -> tuple[str, Iterator[Finding]]:
    """Whoever asks may create what the values render to."""

    def find() -> Iterator[Finding]:
        lacking: dict[str, None] = {}
        asked = dict.fromkeys((body["apiVersion"], collection_of(body)) for body in install.rendered)
        for version, collection in asked:
            group = version.partition("/")[0] if "/" in version else ""
            resource = collection.rpartition("/")[2]
            namespace = install.release.namespace if "/namespaces/" in collection else ""
            attributes = {"group": group, "resource": resource, "verb": "create", "namespace": namespace}
            review = install.client.create(
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                {
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SelfSubjectAccessReview",
                    "spec": {"resourceAttributes": attributes},
                },
            )
            if not review["status"].get("allowed"):
                where = f" in {namespace}" if namespace else ""
                lacking[f"{resource}{f'.{group}' if group else ''}{where}"] = None
        if lacking:
            yield Finding(
                "error",
                f"This account may not create {', '.join(lacking)}.",
                "Install with an account that may, or see docs/install-manifests.md#without-cluster-wide-rights.",
            )

    return f"rights to create {len(install.rendered)} objects", find()


def check_namespace(install: Install) -> tuple[str, Iterator[Finding]]:
    """The release's namespace is there."""
    name = install.release.namespace

    def find() -> Iterator[Finding]:
        if install.client.find(f"/api/v1/namespaces/{name}") is None:
            yield Finding(
                "error",
                f"There is no namespace {name}.",
                "Give the hub's namespace by --namespace: Roost looks for users' pods there.",
            )

    return f"namespace {name}", find()


def check_objects(install: Install) -> tuple[str, Iterator[Finding]]:
    """Every object that the values render to is there."""

    def find() -> Iterator[Finding]:
        missing = [name_of(body) for body in install.rendered if install.client.find(path_of(body)) is None]
        if missing:
            yield Finding(
                "error",
                f"{len(missing)} of {len(install.rendered)} objects are missing: {_some(missing)}.",
                "Are --release, --namespace and -f those of the install? If so, apply it again.",
            )

    return f"{len(install.rendered)} objects of release {install.release.name}", find()


def check_programs(install: Install) -> tuple[str, Iterator[Finding]]:
    """Roost's own programs run."""
    wanted = install.of_kind("Deployment")

    def find() -> Iterator[Finding]:
        for body in wanted:
            found = install.client.find(path_of(body))
            if found is None:
                yield Finding("error", f"{name_of(body)} isn't there.", "See objects, above.")
                continue
            replicas, ready = found["spec"].get("replicas", 1), found.get("status", {}).get("readyReplicas", 0)
            if ready < replicas:
                stuck = _stuck(install.pods, found["spec"]["selector"]["matchLabels"])
                yield Finding(
                    "error" if ready == 0 else "warning",
                    f"{name_of(body)}: {ready} of {replicas} pods are ready{f': {_some(stuck)}' if stuck else ''}.",
                    "If the image can't be pulled: docs/install-helm.md#the-image. "
                    f"Else: kubectl --namespace {install.release.namespace} describe pod and logs of these pods.",
                )

    return f"{len(wanted)} Deployments", find()


def check_leases(install: Install) -> tuple[str, Iterator[Finding]]:
    """The scheduler and the controllers have a leader."""
    parts = [body for name in ("scheduler", "controllers") if (body := install.component(name)) is not None]

    def find() -> Iterator[Finding]:
        for body in parts:
            name, namespace = body["metadata"]["name"], install.release.namespace
            lease = install.client.find(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
            spec = (lease or {}).get("spec") or {}
            age = _age_seconds(spec.get("renewTime"))
            if not spec.get("holderIdentity") or age is None or age > SILENT_SECONDS:
                said = f"was renewed {age:.0f} s ago" if age is not None else "has no holder"
                yield Finding(
                    "error",
                    f"Lease {namespace}/{name} {said}: nobody leads.",
                    f"kubectl --namespace {namespace} logs deployment/{name}",
                )

    return " and ".join(f"Lease {body['metadata']['name']}" for body in parts) or "no Lease is used", find()


def check_certificate(install: Install) -> tuple[str, Iterator[Finding]]:
    """The API server can tell the webhook from an impostor, and has somewhere to send reviews."""
    configurations = install.of_kind("MutatingWebhookConfiguration")

    def find() -> Iterator[Finding]:
        for body in configurations:
            found = install.client.find(path_of(body))
            if found is None:
                yield Finding("error", f"{name_of(body)} isn't there.", "See objects, above.")
                continue
            entries = found.get("webhooks") or []
            bare = [entry["name"] for entry in entries if not entry["clientConfig"].get("caBundle")]
            if bare:
                yield Finding(
                    "error",
                    f"{name_of(body)}: no caBundle in {_some(bare)}, so the API server trusts no webhook.",
                    "The controllers' leader writes it (webhook.certificates.mode self): see their log. certManager: "
                    "does cert-manager's ca-injector run? secret: give webhook.certificates.caBundle.",
                )
            for service in {entry["clientConfig"]["service"]["name"] for entry in entries if _service_of(entry)}:
                if not _ready_addresses(install, service):
                    yield Finding(
                        "error",
                        f"Service {install.release.namespace}/{service} has no ready pod, so no pod is placed.",
                        "kubectl logs of the webhook's pods; /readyz says what a replica waits for "
                        "(docs/troubleshooting.md#is-the-webhook-healthy).",
                    )

    return "the webhook's caBundle and Service" if configurations else "no webhook is used", find()


def check_admission(install: Install) -> tuple[str, Iterator[Finding]]:
    """A pod like a user's or a build's, made with dryRun, is placed."""
    classes = [(name, _labels_of(one)) for name, one in install.values["podClasses"].items() if name in _TRIED]
    tried = [(name, labels) for name, labels in classes if labels] if _admits(install) else []

    def find() -> Iterator[Finding]:
        for name, labels in tried:
            collection = f"/api/v1/namespaces/{install.release.namespace}/pods?dryRun=All"
            try:
                stored = install.client.create(collection, _pod(labels))
            except ApiError as error:
                if error.status == 403:
                    raise
                yield Finding("error", f"A pod of class {name} is refused: {error}", _UNREACHED)
                continue
            if POLICY_REVISION_ANNOTATION not in (stored["metadata"].get("annotations") or {}):
                what = f"A pod of class {name}, made with dryRun, came back without {POLICY_REVISION_ANNOTATION}"
                yield Finding("error", f"{what}: nothing of Roost's reached it.", _UNREACHED)
            elif _lost_scheduler(install, name, stored["spec"]["schedulerName"]):
                yield Finding(
                    "warning",
                    f"A pod of class {name} is placed, and left to scheduler {stored['spec']['schedulerName']}.",
                    "The webhook holds Roost's scheduler to be away: see the Lease above.",
                )

    said = ", ".join(name for name, _ in tried)
    return f"dry-run pods of class {said}" if said else "no class whose pods can be made up", find()


def check_users(install: Install) -> tuple[str, Iterator[Finding]]:
    """The users that run now were placed, and wait for a scheduler that there is."""
    users = _users(install) if _admits(install) else []

    def find() -> Iterator[Finding]:
        missed = [
            pod["metadata"]["name"]
            for pod in users
            if not {POLICY_REVISION_ANNOTATION, OPT_OUT_ANNOTATION} & (pod["metadata"].get("annotations") or {}).keys()
        ]
        if missed:
            yield Finding(
                "warning",
                f"{len(missed)} of {len(users)} users' pods were made without Roost: {_some(missed)}.",
                "Older than the install: nothing to do. Else the API server didn't reach the webhook then: its metric "
                "apiserver_admission_webhook_fail_open_count tells how often.",
            )

    return f"{len(users)} users' pods in {install.release.namespace}", find()


def check_nodes(install: Install) -> tuple[str, Iterator[Finding]]:
    """Labels of nodes go with what their kubelets report."""
    prefix = pulled_prefix(install.release.name, install.release.namespace)

    def find() -> Iterator[Finding]:
        old = []
        for node in install.nodes:
            metadata = node["metadata"]
            labels = metadata.get("labels") or {}
            is_pulling = any(key.startswith(prefix) and value == PULLING for key, value in labels.items())
            if is_pulling and (_age_seconds(metadata["creationTimestamp"]) or 0.0) > _PULL_SECONDS:
                old.append(metadata["name"])
        if old:
            yield Finding(
                "warning",
                f"{len(old)} nodes older than {_PULL_SECONDS / 60:.0f} minutes still lack an image that users need: "
                f"{_some(old)}.",
                "kubectl describe node shows Roost's Events. Does the puller run there, and can the node pull it?",
            )

    number = len(install.nodes)
    return f"{number} {'node' if number == 1 else 'nodes'}", find()


def check_autoscaler(install: Install) -> tuple[str, Iterator[Finding]]:
    """An autoscaler in the cluster sees placeholders, and lets users live."""

    def find() -> Iterator[Finding]:
        priority = install.values["priorityClasses"]["placeholder"]
        for deployment in install.client.get("/apis/apps/v1/deployments")["items"]:
            cutoff = _cutoff_of(deployment)
            if cutoff is not None and priority < cutoff:
                metadata = deployment["metadata"]
                yield Finding(
                    "error",
                    f"Deployment {metadata['namespace']}/{metadata['name']} ignores pods below priority {cutoff}; "
                    f"placeholders have {priority}, so none makes a node come.",
                    f"Set --expendable-pods-priority-cutoff={priority} there, or priorityClasses.placeholder to "
                    f"{cutoff}.",
                )
        yield from _find_karpenter(install)

    return "Deployments of cluster-autoscaler, Karpenter's NodePools", find()


INSTALLED: Final[tuple[tuple[str, Check], ...]] = (
    ("version", check_version),
    ("namespace", check_namespace),
    ("objects", check_objects),
    ("programs", check_programs),
    ("leaders", check_leases),
    ("webhook", check_certificate),
    ("admission", check_admission),
    ("users", check_users),
    ("nodes", check_nodes),
    ("autoscaler", check_autoscaler),
)
BEFORE: Final[tuple[tuple[str, Check], ...]] = (
    ("version", check_version),
    ("namespace", check_namespace),
    ("rights", check_rights),
    ("autoscaler", check_autoscaler),
)

_TRIED: Final = ("user", "build")
_PULL_SECONDS: Final = 1800.0
_UNREACHED: Final = (
    "If all above is well, the API server doesn't reach the webhook: a firewall between control plane and nodes (GKE "
    "private clusters: open the port webhook.port), or a pod network that the control plane isn't part of "
    "(webhook.hostNetwork: true). The class's match and namespaceSelector may also leave out this namespace."
)


def _find_karpenter(install: Install) -> Iterator[Finding]:
    pools = install.client.find("/apis/karpenter.sh/v1/nodepools")
    moving = [
        pool["metadata"]["name"]
        for pool in (pools or {}).get("items", [])
        if (pool["spec"].get("disruption") or {}).get("consolidationPolicy") != "WhenEmpty"
    ]
    users = _users(install) if moving else []
    bare = [
        pod["metadata"]["name"]
        for pod in users
        if (pod["metadata"].get("annotations") or {}).get("karpenter.sh/do-not-disrupt") != "true"
    ]
    if bare:
        yield Finding(
            "warning",
            f"Karpenter may end {len(bare)} of {len(users)} users' pods to save a node (NodePool {_some(moving)}): "
            f"{_some(bare)}.",
            'In the hub\'s values: singleuser.extraAnnotations: {karpenter.sh/do-not-disrupt: "true"}; or '
            "consolidationPolicy: WhenEmpty.",
        )


def _is_refused(error: ClusterError) -> bool:
    return isinstance(error, ApiError) and error.status in (401, 403)


def _admits(install: Install) -> bool:
    return bool(install.of_kind("MutatingWebhookConfiguration") or install.of_kind("MutatingAdmissionPolicy"))


def _users(install: Install) -> list[Object]:
    """The users' pods of the release's namespace; none where their class is chosen by more than labels."""
    labels = _labels_of(install.values["podClasses"].get("user"))
    return [pod for pod in install.pods if labels and labels.items() <= (pod["metadata"].get("labels") or {}).items()]


def _labels_of(pod_class: Any) -> dict[str, str]:  # noqa: ANN401 - a part of the values
    """The labels that pods of a class have; empty where a class is chosen otherwise."""
    match = (pod_class or {}).get("match") or {}
    return dict(match.get("labels") or {}) if "namespaceSelector" not in match else {}


def _pod(labels: dict[str, str]) -> Object:
    """A pod that the `restricted` Pod Security Standard takes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"roost-doctor-{secrets.token_hex(4)}", "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "notebook",
                    "image": "registry.k8s.io/pause:3.10.1",
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }


def _lost_scheduler(install: Install, pod_class: str, scheduler: str) -> bool:
    wants = bool(install.values["podClasses"][pod_class].get("profile"))
    return wants and install.component("scheduler") is not None and scheduler == "default-scheduler"


def _service_of(entry: Object) -> bool:
    return bool(entry["clientConfig"].get("service"))


def _ready_addresses(install: Install, service: str) -> list[str]:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{install.release.namespace}/endpointslices"
    slices = install.client.get(path, {"labelSelector": f"kubernetes.io/service-name={service}"})["items"]
    return [
        address
        for one in slices
        for endpoint in one.get("endpoints") or []
        if (endpoint.get("conditions") or {}).get("ready", True)
        for address in endpoint["addresses"]
    ]


def _stuck(pods: Sequence[Object], selector: dict[str, str]) -> list[str]:
    """Why containers of the selected pods don't run, each pod once."""
    found = []
    for pod in pods:
        if not selector.items() <= (pod["metadata"].get("labels") or {}).items():
            continue
        status = pod.get("status") or {}
        for container in (*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])):
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in _STUCK:
                found.append(f"{pod['metadata']['name']} {waiting['reason']} ({container['image']})")
                break
    return found


def _cutoff_of(deployment: Object) -> int | None:
    """Below which priority a cluster-autoscaler ignores pods; None: the Deployment is none."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        words = " ".join([container.get("image", ""), *container.get("command", []), *container.get("args", [])])
        if "cluster-autoscaler" in words:
            given = _CUTOFF.search(words)
            return int(given[1]) if given else AUTOSCALER_CUTOFF
    return None


def _age_seconds(time: str | None) -> float | None:
    """Seconds since a time as Kubernetes writes it; None: not known."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(time or "")).total_seconds()
    except ValueError:
        return None


def _number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
