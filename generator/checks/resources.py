"""Lint amounts: what the API server takes of them, requests against limits, and placeholders
against the users whose room they reserve.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from fractions import Fraction
from typing import Final

from generator.checks.contract import LintReport, Phrase
from generator.checks.faulty_keys import sound_items
from generator.checks.placeholders import DEFAULTS, ListedSet, placeholder_sets
from generator.faults import KeyPath
from generator.values.lookups import child, mapping
from generator.values.merge import Values
from generator.values.profile_overrides import default_overrides
from generator.values.release_name import Release
from roost_core.objects.quantities import parse_hub_bytes, parse_quantity
from roost_core.objects.quotas import REQUESTS
from roost_core.objects.requests import PLAIN_RESOURCES, requested

_HUB_BYTES: Final = "a number of bytes, or text like 512M or 2G"
_LEAST_MEMORY_BYTES: Final = 2**20
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_REJECTED: Final = "The API server rejects such pods."
_PROGRAMS: Final = (("scheduler",), ("webhook",), ("controllers",), ("recorder",), ("prePuller",))


def check(report: LintReport, _release: Release) -> None:
    """Check every `resources` of the values."""
    for holder in (*_PROGRAMS, DEFAULTS):
        with report.part():
            path = (*holder, "resources")
            _lint_limits(report, path, child(report.values, *path))
    for name, entry in sound_items(report.values.get("podClasses")):
        with report.part():
            _lint_class(report, ("podClasses", name, "resources"), child(entry, "resources"))
    for placeholder_set in placeholder_sets(report):
        with report.part():
            resources = placeholder_set.named.get("resources")
            if resources is not None:
                _lint_limits(report, placeholder_set.path("resources"), resources)
    with report.part():
        _lint_users(report)


def _lint_users(report: LintReport) -> None:
    """Compare every set with the users of the default profile."""
    singleuser = mapping(report.values.get("singleuser"))
    overridden = default_overrides(singleuser.get("profileList"))
    guarantees = _guarantees(singleuser, overridden)
    # Users of the default profile go nowhere else.
    selector = dict(mapping(singleuser.get("nodeSelector")))
    for override in overridden:
        selector |= mapping(override.get("node_selector"))
    users_nodes = {label: value for label, value in selector.items() if value is not None}
    usual_nodes = child(report.values, *DEFAULTS, "nodeSelector")
    # Sets that inherit their resources have one path, and are compared once.
    compared: set[KeyPath] = set()
    for placeholder_set in placeholder_sets(report):
        with report.part():
            path = placeholder_set.path("resources")
            if path in compared:
                continue
            compared.add(path)
            if _is_for_others(placeholder_set, users_nodes, usual_nodes):
                continue
            resources = mapping(placeholder_set.value("resources"))
            requests = requested(resources)
            for resource, guarantee in guarantees.items():
                key = (*path, "requests", resource)
                _lint_placeholder(report, key, requests.get(resource), resource, guarantee)
            _lint_extended(report, path, resources, overridden)


def _is_for_others(placeholder_set: ListedSet, *selectors: object) -> bool:
    """Whether a set names nodes by none of these selectors: users of other profiles go there."""
    named = placeholder_set.named
    return "nodeSelector" in named and named["nodeSelector"] not in selectors


def _guarantees(singleuser: Values, overridden: Sequence[Values]) -> dict[str, object]:
    """What users of the default profile are guaranteed, by resource: later overrides win, unless
    JupyterHub can't read them.
    """
    guarantees = {
        resource: child(singleuser, resource, "guarantee") for resource in ("cpu", "memory")
    }
    traits = {"cpu": "cpu_guarantee", "memory": "mem_guarantee"}
    for override in overridden:
        for resource, trait in traits.items():
            if trait not in override:
                continue
            amount = override[trait]
            if amount is None or _hub_amount(resource, amount) is not None:
                guarantees[resource] = amount
    return guarantees


def _lint_bytes(report: LintReport, path: KeyPath, amounts: object) -> None:
    """Warn about sizes that are typing errors, like 100m of memory: a tenth of a byte."""
    for resource in ("memory", "ephemeral-storage"):
        amount = child(amounts, resource)
        if amount is None:
            continue
        size_bytes = parse_quantity(amount)
        if size_bytes.denominator > 1:
            reason = f"{amount} is not a whole number of bytes."
        elif resource == "memory" and 0 < size_bytes < _LEAST_MEMORY_BYTES:
            reason = f"{amount} is {size_bytes} bytes, with which no container starts."
        else:
            continue
        report.warn((*path, resource), reason, "Write it like 100Mi.")


def _lint_class(report: LintReport, path: KeyPath, amounts: object) -> None:
    """Check what pods of a class request by default: the webhook reads no 0."""
    for resource, amount in mapping(amounts).items():
        if amount is not None and parse_quantity(amount) == 0:
            fix = "To request nothing, write null."
            report.error((*path, resource), amount, "a Kubernetes quantity above 0", fix)
    _lint_bytes(report, path, amounts)


def _lint_limits(report: LintReport, path: KeyPath, resources: object) -> None:
    """Check requests and limits, each by itself and one against the other, as the API server
    does.
    """
    limits = mapping(child(resources, "limits"))
    requests = mapping(child(resources, "requests"))
    for part, amounts in (("requests", requests), ("limits", limits)):
        _lint_bytes(report, (*path, part), amounts)
        for resource, amount in amounts.items():
            _lint_amount(report, (*path, part, resource), resource, amount)
    for resource, request in requests.items():
        key = (*path, "requests", resource)
        limit = limits.get(resource)
        if _is_device(resource) or _is_huge_pages(resource):
            if limit is None or parse_quantity(request) != parse_quantity(limit):
                among = "none" if limit is None else str(limit)
                report.error(key, request, f"the same in limits ({among})", _REJECTED)
        elif limit is not None and parse_quantity(request) > parse_quantity(limit):
            report.error(key, request, f"at most the limit ({limit})", _REJECTED)
    _lint_huge_pages(report, path, requests.keys() | limits.keys())


def _lint_huge_pages(report: LintReport, path: KeyPath, named: Set[str]) -> None:
    """Check that huge pages don't stand alone. named: resources that are requested or limited."""
    has_huge_pages = any(_is_huge_pages(resource) for resource in named)
    if has_huge_pages and not {"cpu", "memory"} & named:
        report.refuse(path, "huge pages need cpu or memory beside them.", _REJECTED)


def _lint_amount(report: LintReport, key: KeyPath, resource: str, amount: object) -> None:
    """Check the name of a resource, and its number."""
    quantity = parse_quantity(amount)
    if _is_huge_pages(resource):
        try:
            page_bytes = parse_quantity(resource.removeprefix(_HUGE_PAGES))
        except ValueError:
            page_bytes = Fraction(0)
        if page_bytes <= 0:
            report.error(key, resource, "a size of pages, like hugepages-2Mi", _REJECTED)
        elif (quantity / page_bytes).denominator > 1:
            report.error(key, amount, "a whole number of pages", _REJECTED)
    elif resource.startswith(REQUESTS) or (_is_short(resource) and resource not in PLAIN_RESOURCES):
        expected = f"{', '.join(PLAIN_RESOURCES)} or a device's whole name, like nvidia.com/gpu"
        report.error(key, resource, expected, _REJECTED)
    elif _is_device(resource) and quantity.denominator > 1:
        report.error(key, amount, "a whole number of devices", _REJECTED)


def _is_short(resource: str) -> bool:
    return "/" not in resource


def _is_huge_pages(resource: str) -> bool:
    return resource.startswith(_HUGE_PAGES)


def _is_device(resource: str) -> bool:
    """Whether it is what Kubernetes calls an extended resource."""
    return not _is_short(resource) and _NATIVE not in resource


def _hub_amount(resource: str, amount: object) -> Fraction | int | None:
    """CPUs or bytes as JupyterHub reads them; None: it can't read the amount."""
    try:
        # CPUs are decimal numbers: read as text, 0.05 is 50m exactly, which a float isn't.
        return Fraction(str(amount)) if resource == "cpu" else parse_hub_bytes(amount)
    except ValueError:
        return None


def _lint_placeholder(
    report: LintReport, path: KeyPath, request: object, resource: str, guarantee: object
) -> None:
    """Compare a placeholder with a user, whose amounts are zero-to-jupyterhub's: K, M, G are powers
    of 1024 there.
    """
    if guarantee is None:
        return
    user = _hub_amount(resource, guarantee)
    if user is None:
        expected = "a number" if resource == "cpu" else _HUB_BYTES
        report.error(("singleuser", resource, "guarantee"), guarantee, expected)
        return
    placeholder = parse_quantity(request) if request is not None else 0
    if placeholder >= user:
        return
    found = Phrase("nothing" if request is None else str(request))
    reason = (
        f"the placeholder ({found}) is smaller than the user it is kept for"
        f" ({guarantee}){_unit_hint(resource, guarantee)}."
    )
    fix = "A user might not fit in the room that a placeholder frees: request at least as much."
    report.warn(path, reason, fix)


def _unit_hint(resource: str, guarantee: object) -> str:
    """What a user's memory is in Kubernetes' units, where the hub's mean something else."""
    if resource == "memory" and isinstance(guarantee, str) and guarantee[-1:] in "KMGT":
        return f" ({guarantee} is {guarantee}i in Kubernetes)"
    return ""


def _lint_extended(
    report: LintReport, path: KeyPath, resources: Values, overridden: Sequence[Values]
) -> None:
    """Compare the extended resources of a placeholder with those of every user; a limit implies a
    request.
    """
    extra = child(report.values, "singleuser", "extraResource")
    users = {**mapping(child(extra, "guarantees")), **mapping(child(extra, "limits"))}
    for override in overridden:
        named = {
            **mapping(override.get("extra_resource_guarantees")),
            **mapping(override.get("extra_resource_limits")),
        }
        # The schema doesn't check overrides: only whole numbers count here.
        users |= {name: amount for name, amount in named.items() if str(amount).isdecimal()}
    held = requested(resources)
    for resource, amount in users.items():
        if "/" in resource and parse_quantity(held.get(resource, 0)) < parse_quantity(amount):
            requests = f"the placeholder requests {held.get(resource, 'nothing')} of {resource}"
            reason = f"{requests}, but a user {amount}: it doesn't keep room for one."
            report.warn(path, reason, f"Name {resource} in its requests and limits.")
