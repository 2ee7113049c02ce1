"""Fields of an object that its values don't render, and that somebody wrote.

Installing again leaves them.

A field is told only if it differs from what the API server would make of the rendered object today,
and if an entry of managedFields names who wrote it. So defaults that the API server fills in, and
what controllers keep, are none. Source: structured-merge-diff's FieldsV1, v4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from roost.doctor.evidence import name_of, plural
from roost_core.objects.fields import JSONObject

# A step is a key of a mapping, or an index of a list.
Pointer = tuple[str | int, ...]

# They keep fields of objects that others install: these are no drift.
_CONTROLLERS: Final = (
    "kube-controller-manager",
    "kube-scheduler",
    "cloud-controller-manager",
    "openshift-",
    "cert-manager",
    "cainjector",
    "roost-",
)
# Of a kind ("": of all), fields that the API server or others choose for each object.
_CHOSEN: Final[Mapping[str, tuple[Pointer, ...]]] = {
    "": (("metadata",), ("status",), ("spec", "replicas")),
    "Service": tuple(
        ("spec", key) for key in ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies")
    ),
    "ServiceAccount": (("secrets",), ("imagePullSecrets",)),
}
# Such objects are kept by who uses them: no field of theirs is foreign.
SKIPPED_KINDS: Final = ("Lease", "PersistentVolumeClaim")
# Last steps of fields that are kept by others, wherever they stand.
_CHOSEN_NAMES: Final = ("caBundle", "nodePort", "kubectl.kubernetes.io/restartedAt")
# Of annotations some may be chosen, and others written by hand.
_EACH_ON_ITS_OWN: Final = "annotations"


class ForeignField(NamedTuple):
    """One field, who wrote it, and the JSON Patch operation that takes it back."""

    pointer: Pointer
    # As people read it: list items by their names.
    path: tuple[str | int, ...]
    manager: str
    operation: JSONObject


def find_foreign(live: JSONObject, fresh: JSONObject) -> list[ForeignField]:
    """Compare an object with what the API server would make of it if it were created now.

    The operations may be done one after the other: items of a list go from its end.
    """
    kind = str(live.get("kind", ""))
    if kind in SKIPPED_KINDS:
        return []
    skipped = (*_CHOSEN[""], *_CHOSEN.get(kind, ()))
    owners = _owners(live)
    found = []
    for pointer, path, operation in _differences(live, fresh, (), ()):
        is_chosen = pointer[-1] in _CHOSEN_NAMES or any(
            pointer[: len(start)] == start for start in skipped
        )
        manager = "" if is_chosen else _manager_of(pointer, owners)
        if manager:
            found.append(ForeignField(pointer, path, manager, operation))
    return found


def patch_command(body: JSONObject, fields: Iterable[ForeignField]) -> str:
    """The kubectl command that takes fields of a rendered object back.

    It does nothing where a list's item has moved meanwhile. Of values it holds the names of items,
    and what the values themselves render or the API server fills in; nothing of a Secret.
    """
    namespace = body["metadata"].get("namespace")
    where = f"--namespace {namespace} " if namespace else ""
    operations = [operation for field in fields for operation in (*_tests(field), field.operation)]
    patch = json.dumps(operations).replace("'", "'\\''")
    if body["kind"] == "Secret" and any("value" in field.operation for field in fields):
        return f"kubectl {where}edit secret {body['metadata']['name']}"
    resource = f"{plural(body['kind'])} {body['metadata']['name']}"
    return f"kubectl {where}patch {resource} --type json --patch '{patch}'"


def _tests(field: ForeignField) -> Iterator[JSONObject]:
    """JSON Patch's `test` of each list item that an operation goes through, by its name: without
    it, an item that somebody else has added since would go.
    """
    for end, (step, name) in enumerate(zip(field.pointer, field.path, strict=True), start=1):
        if isinstance(step, int):
            yield {"op": "test", "path": f"{_text(field.pointer[:end])}/name", "value": name}


def in_words(body: JSONObject, fields: Sequence[ForeignField]) -> str:
    """An object with its fields and who wrote them, without their values: these may be secret."""
    paths = [".".join(map(str, field.path)) for field in fields]
    managers = sorted({field.manager for field in fields})
    return f"{name_of(body)} ({', '.join(paths)}, by {', '.join(managers)})"


def _differences(
    live: object, fresh: object, pointer: Pointer, path: tuple[str | int, ...]
) -> Iterator[tuple[Pointer, tuple[str | int, ...], JSONObject]]:
    """Yield where `live` has what `fresh` hasn't, or has otherwise; what it lacks is told by who
    compares with the values.
    """
    if isinstance(live, dict) and isinstance(fresh, dict):
        for key, value in live.items():
            at = (*pointer, key)
            if key not in fresh and key == _EACH_ON_ITS_OWN:
                yield from _differences(value, {}, at, (*path, key))
            elif key not in fresh:
                yield at, (*path, key), {"op": "remove", "path": _text(at)}
            else:
                yield from _differences(value, fresh[key], at, (*path, key))
    elif isinstance(live, list) and isinstance(fresh, list) and _names(live) and _names(fresh):
        items = {item["name"]: item for item in fresh}
        # From the end: an item that goes moves those behind it.
        for index, item in reversed([*enumerate(live)]):
            at = (*pointer, index)
            if item["name"] not in items:
                yield at, (*path, item["name"]), {"op": "remove", "path": _text(at)}
            else:
                yield from _differences(item, items[item["name"]], at, (*path, item["name"]))
    elif live != fresh:
        yield pointer, path, {"op": "replace", "path": _text(pointer), "value": fresh}


def _names(items: list[Any]) -> bool:
    """Whether a list's items have names of their own."""
    names = [item.get("name") for item in items if isinstance(item, dict)]
    return len({name for name in names if isinstance(name, str)}) == len(items)


def _text(pointer: Pointer) -> str:
    """RFC 6901."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in pointer)


def _owners(live: JSONObject) -> list[tuple[str, list[Pointer]]]:
    """The fields of each manager that is no controller."""
    owners = []
    entries: list[Any] = live["metadata"].get("managedFields") or []
    for entry in entries:
        manager = str(entry.get("manager", ""))
        if not entry.get("subresource") and not manager.startswith(_CONTROLLERS):
            owners.append((manager, [*_leaves(entry.get("fieldsV1") or {}, live, ())]))
    return owners


def _manager_of(pointer: Pointer, owners: Sequence[tuple[str, Sequence[Pointer]]]) -> str:
    """Who wrote a field, or something in it; "": nobody is known to.

    Whose entry names the field itself goes before who has all around it, and who has few fields
    before who has many: that was by hand.
    """
    writers = [
        (not any(leaf[: len(pointer)] == pointer for leaf in leaves), len(leaves), manager)
        for manager, leaves in owners
        if any(leaf[: len(pointer)] == pointer or pointer[: len(leaf)] == leaf for leaf in leaves)
    ]
    return min(writers)[-1] if writers else ""


def _leaves(fields: Any, live: object, pointer: Pointer) -> Iterator[Pointer]:  # noqa: ANN401 - FieldsV1 is JSON
    """The fields that a FieldsV1 names, as pointers into the object."""
    for key, within in fields.items():
        kind, _, name = key.partition(":")
        step: str | int | None = None
        if kind == "f" and isinstance(live, dict) and name in live:
            step = name
        elif kind == "k" and isinstance(live, list):
            keys = json.loads(name)
            step = _first(index for index, item in enumerate(live) if _has(item, keys))
        elif kind == "v" and isinstance(live, list):
            value = json.loads(name)
            step = _first(index for index, item in enumerate(live) if item == value)
        if step is None:
            continue
        at = (*pointer, step)
        if not within or "." in within:
            # Of an item, its being there is its writer's, too.
            has_more = any(inner != "." for inner in within)
            if not has_more or kind == "k":
                yield at
        if within:
            inner = live[step]  # type: ignore[index] # a step of this object
            yield from _leaves(within, inner, at)


def _first(indexes: Iterator[int]) -> int | None:
    return next(indexes, None)


def _has(item: Any, keys: Mapping[str, Any]) -> bool:  # noqa: ANN401 - JSON
    return isinstance(item, dict) and all(item.get(key) == value for key, value in keys.items())
