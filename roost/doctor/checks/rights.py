"""The account that runs `roost doctor` may create the objects that the values render."""

from roost.doctor.evidence import collection_of
from roost.doctor.findings import CheckReport, error
from roost.doctor.install import Install

_API = "authorization.k8s.io/v1"


def check(install: Install) -> CheckReport:
    yield f"rights to create {len(install.rendered)} objects"
    lacking: dict[str, None] = {}
    collections = dict.fromkeys(
        (body["apiVersion"], collection_of(body)) for body in install.rendered
    )
    for version, collection in collections:
        group = version.partition("/")[0] if "/" in version else ""
        resource = collection.rpartition("/")[2]
        namespace = install.release.namespace if "/namespaces/" in collection else ""
        attributes = {
            "group": group,
            "resource": resource,
            "verb": "create",
            "namespace": namespace,
        }
        review = {
            "apiVersion": _API,
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = install.client.create(f"/apis/{_API}/selfsubjectaccessreviews", review)
        if not answer["status"].get("allowed"):
            named = f"{resource}.{group}" if group else resource
            lacking[f"{named} in {namespace}" if namespace else named] = None
    if lacking:
        fix = (
            "Install with an account that may, or see"
            " docs/install-manifests.md#without-cluster-wide-rights."
        )
        yield error(f"This account may not create {', '.join(lacking)}.", fix)
