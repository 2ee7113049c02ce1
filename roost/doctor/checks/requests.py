"""Requests that a class gives its pods: they get them. ResourceQuotas and LimitRanges refuse
neither these pods nor Roost's own.
"""

from roost.doctor.evidence import admits, labels_of, listed, namespace_of
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost.doctor.quotas import BOUNDS, bounds, find_counted, find_refused, named, scopes
from roost.doctor.try_pod import make_pod, opted_out, refusal_of
from roost_core.objects.fields import JSONObject
from roost_core.objects.quotas import ACROSS_NAMESPACES


def check(install: Install) -> CheckReport:
    given = {
        name: pod_class
        for name, pod_class in install.values["podClasses"].items()
        if pod_class.get("resources") and labels_of(pod_class)
    }
    yield "ResourceQuotas and LimitRanges of the classes' namespaces"
    if admits(install):
        for name, pod_class in given.items():
            yield from _check_class(install, name, pod_class)
    if install.values["sharedPools"].get("namespaceSelector") is not None:
        joining = [
            pod_class
            for pod_class in install.values["podClasses"].values()
            if pod_class.get("join") or pod_class.get("avoid")
        ]
        quotas = [
            body
            for pod_class in joining
            for body in listed(install, pod_class, "/api/v1", "resourcequotas")
        ]
        if guards := [body for body in quotas if ACROSS_NAMESPACES in scopes(body)]:
            evidence = (
                f"Pods join and avoid none of other namespaces: {named('ResourceQuota', guards)}"
                " limits that."
            )
            yield warning(
                evidence,
                "Nothing need be done, they run as without sharedPools (docs/placement.md).",
            )
    yield from find_refused(install)
    yield from find_counted(install)


def _check_class(install: Install, name: str, pod_class: JSONObject) -> CheckReport:
    """What keeps a class's requests from its pods."""
    quotas = [
        quota
        for quota in listed(install, pod_class, "/api/v1", "resourcequotas")
        if "NotBestEffort" in scopes(quota)
    ]
    if quotas:
        yield warning(
            f"Pods of class {name} get no requests: {named('ResourceQuota', quotas)} could"
            " refuse them for these.",
            "Nothing need be done, they run as without Roost. For nodes to fill up, have their"
            " author give them requests (BinderHub: KubernetesBuildExecutor.resources) that the"
            " quota has room for.",
        )
    ranges = [
        body
        for body in listed(install, pod_class, "/api/v1", "limitranges")
        if bounds(body, *BOUNDS)
    ]
    if ranges:
        yield warning(
            f"Pods of class {name} get the requests of {named('LimitRange', ranges)}, not those"
            " of their class.",
            "Nothing need be done if those are what such pods need.",
        )
    yield from _try(install, name, pod_class)


def _try(install: Install, name: str, pod_class: JSONObject) -> CheckReport:
    """Create a pod without requests, with dryRun: whatever is admitted without Roost is admitted
    with it.
    """
    namespace = namespace_of(install, pod_class)
    if not namespace:
        return
    pod = make_pod({"metadata": {"labels": labels_of(pod_class)}})
    for container in pod["spec"]["containers"]:
        container["resources"] = {}
    refusal = refusal_of(install.client, namespace, pod)
    refusal_without = refusal_of(install.client, namespace, opted_out(pod))
    if refusal and not refusal_without:
        fix = (
            f"Set podClasses.{name}.resources: null. The webhook should have seen what refuses it:"
            " see its log."
        )
        yield error(
            f"A pod of class {name} without requests is refused, and admitted without Roost:"
            f" {refusal}",
            fix,
            is_felt=True,
        )
