"""Is the release what its values say, and does it run?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.doctor.evidence import age_seconds, some
from roost.doctor.findings import Finding
from roost.doctor.install import collection_of, name_of, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roost.doctor.install import Install, Object

# A holder renews its Lease every few seconds; this long after, nobody does.
SILENT_SECONDS: Final = 60.0
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
                f"{len(missing)} of {len(install.rendered)} objects are missing: {some(missing)}.",
                "Are --release, --namespace and -f those of the install? If so, apply it again.",
            )

    return f"{len(install.rendered)} objects of release {install.release.name}", find()


def check_programs(install: Install) -> tuple[str, Iterator[Finding]]:
    """Roost's own programs run."""
    wanted = install.of_kind("Deployment")
    others = [*install.of_kind("DaemonSet"), *install.of_kind("StatefulSet")]

    def find() -> Iterator[Finding]:
        for body in wanted:
            found = install.client.find(path_of(body))
            if found is None:
                yield Finding("error", f"{name_of(body)} isn't there.", "See objects, above.")
                continue
            replicas, ready = found["spec"].get("replicas", 1), found.get("status", {}).get("readyReplicas", 0)
            if ready < replicas:
                stuck = stuck_pods(install.pods, found["spec"]["selector"]["matchLabels"])
                yield Finding(
                    "error" if ready == 0 else "warning",
                    f"{name_of(body)}: {ready} of {replicas} pods are ready{f': {some(stuck)}' if stuck else ''}.",
                    "If the image can't be pulled: docs/install-helm.md#the-image. "
                    f"Else: kubectl --namespace {install.release.namespace} describe pod and logs of these pods.",
                )

        for body in others:
            stuck = stuck_pods(install.pods, body["spec"]["selector"]["matchLabels"])
            if stuck:
                yield Finding(
                    "warning",
                    f"{name_of(body)}: pods don't start: {some(stuck)}.",
                    "An image that can't be pulled: copy it to a registry that nodes reach, with pull secrets if it "
                    "asks for any (imagePullSecrets, singleuser.image.pullSecrets).",
                )

    return f"{len(wanted)} Deployments, {len(others)} other workloads", find()


def check_leases(install: Install) -> tuple[str, Iterator[Finding]]:
    """The scheduler and the controllers have a leader."""
    parts = [body for name in ("scheduler", "controllers") if (body := install.component(name)) is not None]

    def find() -> Iterator[Finding]:
        for body in parts:
            name, namespace = body["metadata"]["name"], install.release.namespace
            lease = install.client.find(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
            spec = (lease or {}).get("spec") or {}
            age = age_seconds(spec.get("renewTime"))
            if not spec.get("holderIdentity") or age is None or age > SILENT_SECONDS:
                said = f"was renewed {age:.0f} s ago" if age is not None else "has no holder"
                yield Finding(
                    "error",
                    f"Lease {namespace}/{name} {said}: nobody leads.",
                    f"kubectl --namespace {namespace} logs deployment/{name}",
                )

    return " and ".join(f"Lease {body['metadata']['name']}" for body in parts) or "no Lease is used", find()


def stuck_pods(pods: Sequence[Object], selector: dict[str, str]) -> list[str]:
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


def _number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))
