"""The release's objects are there as the values render them, and hold nothing that somebody else
wrote into them.

What the values render is compared as `kubectl diff --server-side` does, the rest with a dry run of
the object's creation.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from generator.faults import KeyPath, show_path
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
from roost.doctor.evidence import collection_of, count, name_of, path_of, some
from roost.doctor.findings import CheckReport, error, unknown, warning
from roost.doctor.foreign_fields import (
    SKIPPED_KINDS,
    ForeignField,
    find_foreign,
    in_words,
    patch_command,
)
from roost.doctor.how_installed import apply_again, command_of, installers_of
from roost.doctor.install import Install
from roost_core.kube.client import UNPROCESSABLE, ApiError, ClusterError
from roost_core.objects.fields import JSONObject

_MANAGER: Final = "roost-doctor"
# Without one of these, or with another one, a program may not start. No PodDisruptionBudget and no
# rule of alerts keeps one from it.
_NEEDED_TO_START: Final = frozenset(
    (
        "Deployment",
        "DaemonSet",
        "StatefulSet",
        "Service",
        "NetworkPolicy",
        "ConfigMap",
        "Secret",
        "PersistentVolumeClaim",
        "Lease",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "PriorityClass",
        "MutatingWebhookConfiguration",
    )
)
# Commands that are told at a time.
_SHOWN: Final = 3


class _Wrong(NamedTuple):
    """An object that isn't as the values render it."""

    # Its name, and what is wrong with it.
    text: str
    # The component that may not start for it; "": none.
    component: str


class _Trial(NamedTuple):
    """What applying an object again would change, by a dry run."""

    body: JSONObject
    applier: str
    before: JSONObject
    after: JSONObject
    # Fields beside the values that whoever installs wrote, and takes away once it no longer renders
    # them: with who wrote each.
    added: list[tuple[KeyPath, str]]
    # Fields beside the values that anybody else wrote.
    by_hand: list[ForeignField]


def check(install: Install) -> CheckReport:
    yield f"{len(install.rendered)} objects of release {install.release.name}"
    applied = _try_all(install)
    yield from _find_broken(install, applied)
    yield from _find_fixed_priorities(install, applied)
    yield from _find_added(install, applied)
    yield from _find_foreign(applied)
    if applied.denied:
        fix = "Run it with an account that may patch these objects."
        yield unknown(f"Not allowed to compare: {some(applied.denied, 1)}.", fix)


@dataclass(slots=True)
class _Applied:
    """What a dry run of the whole release showed."""

    # The objects that are there.
    there: list[JSONObject] = field(default_factory=list)
    missing: list[_Wrong] = field(default_factory=list)
    # Objects that the API server refuses as the values render them.
    refused: list[_Wrong] = field(default_factory=list)
    # Objects that aren't as the values render them.
    differing: list[_Wrong] = field(default_factory=list)
    # PriorityClasses with another value, which can't be changed.
    fixed: list[str] = field(default_factory=list)
    # Objects that may not be compared.
    denied: list[str] = field(default_factory=list)
    trials: dict[Identity, _Trial] = field(default_factory=dict)


def _try_all(install: Install) -> _Applied:
    applied = _Applied()
    for body in install.rendered:
        live = install.client.find(path_of(body))
        name = name_of(body)
        if live is None:
            applied.missing.append(_Wrong(name, _needed_by(body)))
            continue
        applied.there.append(live)
        try:
            trial = _try_apply(install, body, live)
        except ApiError as refusal:
            text = f"{name} ({refusal})"
            if refusal.status in (401, 403):
                applied.denied.append(text)
            elif refusal.status == UNPROCESSABLE and body["kind"] == "PriorityClass":
                applied.fixed.append(text)
            else:
                applied.refused.append(_Wrong(text, _needed_by(body)))
            continue
        applied.trials[Identity(body["apiVersion"], body["kind"], "", name)] = trial
    applied.differing = _divide_changes(applied.trials)
    return applied


def _find_broken(install: Install, applied: _Applied) -> CheckReport:
    """Objects that are missing, refused or different: what they are for may not work."""
    missing = applied.missing
    differing = applied.differing
    for wrong, evidence in (
        (missing, f"{len(missing)} of {len(install.rendered)} objects are missing"),
        (applied.refused, "As the values render them, the API server refuses"),
        (differing, f"{count(len(differing), 'object')} not as the values render"),
    ):
        if wrong:
            yield error(
                f"{evidence}: {some([wrong_object.text for wrong_object in wrong])}.",
                apply_again(install, applied.there),
                _broken(wrong_object.component for wrong_object in wrong),
                CUT_OFF | NO_NAMESPACE,
            )


def _find_fixed_priorities(install: Install, applied: _Applied) -> CheckReport:
    if applied.fixed:
        names = [text.split()[1] for text in applied.fixed]
        yield error(
            "A PriorityClass has another value than the values say:"
            f" {some(applied.fixed)}. Its value can't be changed.",
            f"`kubectl delete priorityclass {' '.join(names)}` (pods that are there keep their"
            f" priority), then {command_of(install, applied.there)}.",
        )


def _find_added(install: Install, applied: _Applied) -> CheckReport:
    """Fields beside the values that whoever installs wrote."""
    number = 0
    texts = []
    for trial in applied.trials.values():
        if not trial.added:
            continue
        number += len(trial.added)
        paths = [show_path(path) for path, _ in trial.added]
        managers = sorted({manager for _, manager in trial.added})
        texts.append(f"{name_of(trial.body)} ({some(paths)}, by {', '.join(managers)})")
    if texts:
        yield warning(
            f"{count(number, 'field')} that these values don't render, and that whoever installs"
            f" wrote: {some(texts)}.",
            "What kustomize or a post-renderer adds may stay. What other values rendered:"
            f" {apply_again(install, applied.there)}",
        )


def _find_foreign(applied: _Applied) -> CheckReport:
    """Fields beside the values that anybody else wrote."""
    foreign = [(trial.body, trial.by_hand) for trial in applied.trials.values() if trial.by_hand]
    if not foreign:
        return
    number = sum(len(fields) for _, fields in foreign)
    evidence = some([in_words(body, fields) for body, fields in foreign])
    commands = [patch_command(body, fields) for body, fields in foreign[:_SHOWN]]
    yield warning(
        f"{count(number, 'field')} that the values don't render: {evidence}. Installing again"
        " leaves them.",
        f"Write them into the values, or take them back: `{'; '.join(commands)}`.",
    )


def _try_apply(install: Install, body: JSONObject, live: JSONObject) -> _Trial:
    """Apply an object again by a dry run. Raises ApiError if the API server refuses it."""
    applier = _applier(live)
    applied = install.client.try_apply(path_of(body), body, applier)
    fields = _foreign_fields(install, body, applied)
    installers = installers_of(live)
    return _Trial(
        body=body,
        applier=applier,
        before=_of_values(live, body),
        after=_of_values(applied, body),
        added=[(field.path, field.manager) for field in fields if field.manager in installers],
        by_hand=[field for field in fields if field.manager not in installers],
    )


def _divide_changes(trials: Mapping[Identity, _Trial]) -> list[_Wrong]:
    """Divide what applying again would change. What the applier applied and the values no longer
    render goes to the trial's `added`. Returns the objects with any other change.
    """
    before = {identity: trial.before for identity, trial in trials.items()}
    after = {identity: trial.after for identity, trial in trials.items()}
    changes = {changed.identity: changed.fields for changed in compare(before, after)}
    differing = []
    for identity, trial in trials.items():
        paths = []
        for change in changes.get(identity, ()):
            if change.path == ("spec", "replicas"):
                # The check programs tells of replicas.
                continue
            # Without an applier, or with nothing there, it goes with a rendered field.
            is_added = trial.applier != _MANAGER and change.before is not ABSENT
            if is_added and not _is_rendered(trial.body, change.path):
                trial.added.append((change.path, trial.applier))
            else:
                paths.append(show_path(change.path))
        if paths:
            text = f"{name_of(trial.body)} ({some(paths)})"
            differing.append(_Wrong(text, _needed_by(trial.body)))
    return differing


def _is_rendered(body: JSONObject, path: KeyPath) -> bool:
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
    """Who applied an object, server-side. What this manager has applied, and the values no longer
    render, is drift, too.
    """
    entries: list[Any] = live["metadata"].get("managedFields") or []
    applied = [
        entry
        for entry in entries
        if entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    if not applied:
        return _MANAGER
    # Of several, who applied most.
    largest = max(applied, key=lambda entry: len(str(entry.get("fieldsV1"))))
    return str(largest["manager"])
