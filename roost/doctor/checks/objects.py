"""The release's objects are there as the values render them: as `kubectl diff --server-side` sees
it.
"""

from typing import Any, Final

from generator.faults import show_path
from generator.render.diff import compare
from generator.render.manifests import Identity
from roost.doctor.contract import Install, Told, error, unknown
from roost.doctor.evidence import count, name_of, path_of, some
from roost.doctor.installer import apply_again, command_of
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject

_MANAGER: Final = "roost-doctor"
_UNPROCESSABLE: Final = 422


def check(install: Install) -> Told:
    yield f"{len(install.rendered)} objects of release {install.release.name}"
    told: dict[str, list[str]] = {"missing": [], "refused": [], "fixed": [], "denied": []}
    there = []
    before = {}
    after = {}
    for body in install.rendered:
        live = install.client.find(path_of(body))
        name = name_of(body)
        if live is None:
            told["missing"].append(name)
            continue
        there.append(live)
        try:
            applied = install.client.try_apply(path_of(body), body, _applier(live))
        except ApiError as refusal:
            if refusal.status in (401, 403):
                kind = "denied"
            elif refusal.status == _UNPROCESSABLE and body["kind"] == "PriorityClass":
                kind = "fixed"
            else:
                kind = "refused"
            told[kind].append(f"{name} ({refusal})")
            continue
        identity = Identity(body["apiVersion"], body["kind"], "", name)
        before[identity] = _of_values(live, body)
        after[identity] = _of_values(applied, body)
    differing = [
        f"{change.identity.name} ({some(fields)})"
        for change in compare(before, after)
        # The check programs tells of replicas.
        if (
            fields := [
                show_path(field.path)
                for field in change.fields
                if field.path != ("spec", "replicas")
            ]
        )
    ]
    all_ = len(install.rendered)
    for names, evidence in (
        (told["missing"], f"{len(told['missing'])} of {all_} objects are missing"),
        (told["refused"], "As the values render them, the API server refuses"),
        (differing, f"{count(len(differing), 'object')} not as the values render"),
    ):
        if names:
            yield error(f"{evidence}: {some(names)}.", apply_again(install, there))
    if told["fixed"]:
        names = [text.split()[1] for text in told["fixed"]]
        yield error(
            f"A PriorityClass has another value than the values say: {some(told['fixed'])}. Its"
            " value can't be changed.",
            f"`kubectl delete priorityclass {' '.join(names)}` (pods that are there keep their"
            f" priority), then {command_of(install, there)}.",
        )
    if told["denied"]:
        fix = "Run it with an account that may patch these objects."
        yield unknown(f"Not allowed to compare: {some(told['denied'], 1)}.", fix)


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
