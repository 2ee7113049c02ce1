"""What ResourceQuotas and LimitRanges of a namespace do to Roost's pods, and what is read of
them.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any, Final

from generator.importing.quantities import memory_quantity
from generator.values.release_name import Release
from roost.doctor.conditions import State, conditions
from roost.doctor.evidence import name_of, path_of, some
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost_core.kube.client import Client, list_all
from roost_core.objects.fields import JSONObject
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.quotas import Counted, read_quota
from roost_core.objects.requests import CPU, MEMORY, read_requests
from roost_core.placement.labels import PLACEHOLDER_CLASS, cluster_object_name

# A user's pod, as quotas see it: without a PriorityClass, unless the hub gives it one.
_USER: Final = Counted(requests={CPU: 1, MEMORY: 1}, limits={})
_COUNTED: Final = {
    "pods",
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
}

# Of a limit, too, comes a request.
BOUNDS: Final = ("default", "defaultRequest", "min", "max")


# In the API server's words.
EXCEEDED: Final = "exceeded quota"


def quota_in_refusal(refusal: str) -> str:
    """The first ResourceQuota that a refusal names; "": none."""
    match = re.search(rf"{EXCEEDED}: ([^,\s]+)", refusal)
    return match[1] if match else ""


def find_refused(install: Install) -> CheckReport:
    """Find pullers and placeholders that a LimitRange refuses."""
    path = f"/api/v1/namespaces/{install.release.namespace}/limitranges"
    workloads = install.of_kind("DaemonSet") + install.of_kind("StatefulSet")
    for limit_range, body in product(list_all(install.client, path), workloads):
        whose = "placeholder.defaults (or of the set's own)"
        if body["kind"] == "DaemonSet":
            whose = "prePuller"
        resources = body["spec"]["template"]["spec"]["containers"][0].get("resources") or {}
        limits = resources.get("limits") or {}
        requests = resources.get("requests") or {}
        # A default becomes the limit of those without one, and no request may be above its limit.
        without = {name: amount for name, amount in requests.items() if name not in limits}
        for bound, given in (
            ("min", limits | requests),
            ("max", requests | limits),
            ("default", without),
        ):
            for name, amount in bounds(limit_range, bound).items():
                more = parse_quantity(given.get(name, amount)) - parse_quantity(amount)
                is_refused = more < 0 if bound == "min" else more > 0
                if not is_refused:
                    continue
                part = "limits" if bound == "max" and name in limits else "requests"
                yield error(
                    f"{named('LimitRange', [limit_range])} refuses pods of {name_of(body)}: its"
                    f" {bound} of {name} is {amount}, and theirs {given[name]}.",
                    f"Set resources.{part}.{name} of {whose} to {amount}, or have its author"
                    " change it.",
                )


def find_counted(install: Install) -> CheckReport:
    """Find quotas that users and placeholders take up together."""
    quotas = counting(install.client, install.release)
    counted = [
        quota
        for quota in quotas
        if counts_users(quota) and quota["spec"].get("hard", {}).keys() & _COUNTED
    ]
    sets = []
    # Sets that learn: their number is nobody's yet, and its bound isn't what they will have.
    has_learning_sets = False
    entries = {
        placeholder_set["name"]: placeholder_set
        for placeholder_set in install.values["placeholders"]
    }
    for body in install.of_kind("StatefulSet"):
        # The most that the values say, events aside: a StatefulSet with windows doesn't say.
        entry = entries.get(name_of(body).rpartition("-placeholder-")[2], {})
        numbers = [
            entry.get("replicas"),
            *(window.get("replicas") for window in entry.get("windows") or ()),
        ]
        if entry.get("learn"):
            has_learning_sets = True
            live = install.client.find(path_of(body)) or {}
            numbers.append((live.get("spec") or {}).get("replicas"))
        most = max(number or 0 for number in numbers)
        sets.append((most, body["spec"]["template"]["spec"]))
    if counted and sets:
        pods = 0
        cpu = 0
        memory = 0
        for number, spec in sets:
            requests = dict(read_requests(spec))
            pods += number
            cpu += number * requests.get(CPU, 0)
            memory += number * requests.get(MEMORY, 0)
        needs = f"{pods} pods, CPU {cpu}m, memory {memory_quantity(memory)}"
        needs += " now; sets that learn may come to more" if has_learning_sets else ""
        full = conditions(State.QUOTA_FULL, *(quota["metadata"]["name"] for quota in counted))
        yield warning(
            f"{named('ResourceQuota', counted)} counts placeholders, too: once it is used up, users"
            " are refused, and no placeholder makes room for them.",
            f"Raise it by their requests ({needs}), or have it count other pods alone"
            " (scopeSelector PriorityClass).",
            follows=full,
        )


def counting(client: Client, release: Release) -> list[JSONObject]:
    """The quotas that count a release's placeholders, as controllers judge it. Raises
    ClusterError.
    """
    own_class = cluster_object_name(release.name, release.namespace, PLACEHOLDER_CLASS)
    placeholder = _USER._replace(priority_class=own_class)
    quotas = list_all(client, f"/api/v1/namespaces/{release.namespace}/resourcequotas")
    return [quota for quota in quotas if read_quota(quota).counts(placeholder)]


def counts_users(quota: JSONObject) -> bool:
    """Whether a quota counts users' pods without a PriorityClass.

    A class that the hub gives its users isn't known here. Whoever wrote a quota for classes chose
    whom it counts.
    """
    return read_quota(quota).counts(_USER)


def scopes(quota: JSONObject) -> set[str]:
    """The names of a ResourceQuota's scopes. Unlike `read_quota`, it raises of malformed ones, as
    `READS` needs.
    """
    selected = (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or ()
    return {*(quota["spec"].get("scopes") or ()), *(scope["scopeName"] for scope in selected)}


def bounds(limit_range: JSONObject, *keys: str) -> dict[str, Any]:
    """What a LimitRange gives containers, or holds them to, by resource."""
    items = [
        limit.get(key) or {}
        for limit in limit_range["spec"]["limits"]
        if limit["type"] == "Container"
        for key in keys
    ]
    return {
        name: amount
        for item in items
        for name, amount in item.items()
        if parse_quantity(amount) >= 0
    }


def _amounts(part: Any, key: str) -> list[Fraction]:  # noqa: ANN401 - of an object
    return [parse_quantity(amount) for amount in ((part or {}).get(key) or {}).values()]


# All that is read of such objects, by kind; of malformed ones it raises what it raises.
READS: Final[Mapping[str, Callable[[JSONObject], object]]] = {
    "ResourceQuota": lambda body: (
        scopes(body),
        _amounts(body["spec"], "hard"),
        _amounts(body.get("status"), "used"),
    ),
    "LimitRange": lambda body: bounds(body, *BOUNDS),
}


def named(kind: str, bodies: list[JSONObject]) -> str:
    """The first of these objects, for people."""
    names = {"/".join((body["metadata"]["namespace"], body["metadata"]["name"])) for body in bodies}
    return f"{kind} {some(sorted(names))}"
