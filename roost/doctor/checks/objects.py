"""The release's objects are there as the values render them, and hold nothing that somebody else
wrote into them.

What the values render is compared as `kubectl diff --server-side` does, the rest with a dry run of
the object's creation.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, Final

from generator.faults import Path as FieldPath
from generator.faults import show_path
from generator.render.diff import ABSENT, compare
from generator.render.manifests import Identity
from roost.doctor.conditions import (
    CUT_OFF,
    NO_NAMESPACE,
    Condition,
    State,
    component_of,
    conditions,
)
from roost.doctor.contract import Install, Told, error, unknown, warning
from roost.doctor.evidence import collection_of, count, name_of, path_of, some
from roost.doctor.foreign_fields import (
    SKIPPED_KINDS,
    ForeignField,
    find_foreign,
    in_words,
    patch_command,
)
from roost.doctor.installer import apply_again, command_of, installers_of
from roost_core.kube.client import ApiError, ClusterError
from roost_core.objects.fields import JSONObject

_MANAGER: Final = "roost-doctor"
_UNPROCESSABLE: Final = 422
# Without one of these, or with another one, a program may not start. No PodDisruptionBudget and no
# rule of alerts keeps one from it.
_NEEDED_TO_START: Final = frozenset(
    (
        *("Deployment", "DaemonSet", "StatefulSet", "Service", "NetworkPolicy"),
        *("ConfigMap", "Secret", "PersistentVolumeClaim", "Lease"),
        *("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
        *("PriorityClass", "MutatingWebhookConfiguration"),
    )
)
# Commands that are told at a time.
_SHOWN: Final = 3


def check(install: Install) -> Told:
    yield f"{len(install.rendered)} objects of release {install.release.name}"
    told: dict[str, list[str]] = {"missing": [], "refused": [], "fixed": [], "denied": []}
    # Components that need the objects that are told, in the same lists.
    components: dict[str, set[str]] = {"missing": set(), "refused": set(), "differing": set()}
    there = []
    before = {}
    after = {}
    bodies = {}
    # Fields beside the values that whoever installs wrote, and takes away once it no longer renders
    # them: with who wrote each.
    added: dict[Identity, list[tuple[FieldPath, str]]] = {}
    appliers = {}
    foreign: list[tuple[JSONObject, list[ForeignField]]] = []
    for body in install.rendered:
        live = install.client.find(path_of(body))
        name = name_of(body)
        if live is None:
            told["missing"].append(name)
            components["missing"].add(_needed_by(body))
            continue
        there.append(live)
        try:
            applier = _applier(live)
            applied = install.client.try_apply(path_of(body), body, applier)
        except ApiError as refusal:
            if refusal.status in (401, 403):
                kind = "denied"
            elif refusal.status == _UNPROCESSABLE and body["kind"] == "PriorityClass":
                kind = "fixed"
            else:
                kind = "refused"
                components["refused"].add(_needed_by(body))
            told[kind].append(f"{name} ({refusal})")
            continue
        identity = Identity(body["apiVersion"], body["kind"], "", name)
        before[identity] = _of_values(live, body)
        after[identity] = _of_values(applied, body)
        bodies[identity] = body
        fields = _foreign_fields(install, body, applied)
        installers = installers_of(live)
        by_hand = [field for field in fields if field.manager not in installers]
        appliers[identity] = applier
        added[identity] = [
            (field.path, field.manager) for field in fields if field.manager in installers
        ]
        if by_hand:
            foreign.append((body, by_hand))
    differing = []
    changes = {change.identity: change.fields for change in compare(before, after)}
    for identity, body in bodies.items():
        paths = []
        for field in changes.get(identity, ()):
            if field.path == ("spec", "replicas"):
                # The check programs tells of replicas.
                continue
            # Without an applier, or with nothing there, it goes with a rendered field.
            is_added = appliers[identity] != _MANAGER and field.before is not ABSENT
            if is_added and not _is_rendered(body, field.path):
                added[identity].append((field.path, appliers[identity]))
            else:
                paths.append(show_path(field.path))
        if paths:
            differing.append(f"{name_of(body)} ({some(paths)})")
            components["differing"].add(_needed_by(body))
    all_ = len(install.rendered)
    for names, evidence, of in (
        (told["missing"], f"{len(told['missing'])} of {all_} objects are missing", "missing"),
        (told["refused"], "As the values render them, the API server refuses", "refused"),
        (differing, f"{count(len(differing), 'object')} not as the values render", "differing"),
    ):
        if names:
            yield error(
                f"{evidence}: {some(names)}.",
                apply_again(install, there),
                _broken(components[of]),
                CUT_OFF | NO_NAMESPACE,
            )
    if told["fixed"]:
        names = [text.split()[1] for text in told["fixed"]]
        yield error(
            f"A PriorityClass has another value than the values say: {some(told['fixed'])}. Its"
            " value can't be changed.",
            f"`kubectl delete priorityclass {' '.join(names)}` (pods that are there keep their"
            f" priority), then {command_of(install, there)}.",
        )
    if number := sum(map(len, added.values())):
        evidence = some(
            [
                f"{name_of(bodies[identity])} ({some([show_path(path) for path, _ in fields])}, by"
                f" {', '.join(sorted({manager for _, manager in fields}))})"
                for identity, fields in added.items()
                if fields
            ]
        )
        yield warning(
            f"{count(number, 'field')} that these values don't render, and that whoever installs"
            f" wrote: {evidence}.",
            "What kustomize or a post-renderer adds may stay. What other values rendered:"
            f" {apply_again(install, there)}",
        )
    if foreign:
        number = sum(len(fields) for _, fields in foreign)
        evidence = some([in_words(body, fields) for body, fields in foreign])
        commands = [patch_command(body, fields) for body, fields in foreign[:_SHOWN]]
        yield warning(
            f"{count(number, 'field')} that the values don't render: {evidence}. Installing again"
            " leaves them.",
            f"Write them into the values, or take them back: `{'; '.join(commands)}`.",
        )
    if told["denied"]:
        fix = "Run it with an account that may patch these objects."
        yield unknown(f"Not allowed to compare: {some(told['denied'], 1)}.", fix)


def _is_rendered(body: JSONObject, path: FieldPath) -> bool:
    """Whether the values render a field; a list whose items have no names is one field."""
    value: Any = body
    for step in path:
        if isinstance(value, list):
            if isinstance(step, int):
                return True
            value = {item.get("name"): item for item in value if isinstance(item, dict)}
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True


def _needed_by(body: JSONObject) -> str:
    """The component that may not start for what is wrong with an object; "": none."""
    return component_of(body) if body["kind"] in _NEEDED_TO_START else ""


def _broken(components: Iterable[str]) -> frozenset[Condition]:
    return conditions(State.BROKEN, *(name for name in components if name))


def _foreign_fields(install: Install, body: JSONObject, applied: JSONObject) -> list[ForeignField]:
    """What an object would still hold beside the values, once they are applied."""
    if body["kind"] in SKIPPED_KINDS:
        return []
    metadata = {**body["metadata"], "name": f"roost-trial-{secrets.token_hex(4)}"}
    try:
        fresh = install.client.create(
            f"{collection_of(body)}?dryRun=All", {**body, "metadata": metadata}
        )
    except ClusterError:
        # Another object of that kind may not be made (rights, a quota): nothing to compare with.
        return []
    return find_foreign({"kind": body["kind"], **applied}, fresh)


def _of_values(found: JSONObject, body: JSONObject) -> JSONObject:
    """What of an object comes from the values: not from the API server, nor from who installs."""
    metadata = {}
    for part in ("labels", "annotations"):
        rendered = (body["metadata"].get(part) or {}).keys() - {"app.kubernetes.io/managed-by"}
        metadata[part] = {key: (found["metadata"].get(part) or {}).get(key) for key in rendered}
    return {**{key: value for key, value in found.items() if key != "status"}, "metadata": metadata}


def _applier(live: JSONObject) -> str:
    """Who applied an object, server-side: what that one has applied, and the values no longer
    render, is drift too.
    """
    entries: list[Any] = live["metadata"].get("managedFields") or []
    applied = [
        entry
        for entry in entries
        if entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    return (
        str(max(applied, key=lambda entry: len(str(entry.get("fieldsV1"))))["manager"])
        if applied
        else _MANAGER
    )
