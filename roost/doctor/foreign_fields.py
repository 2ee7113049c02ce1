"""Find foreign fields of an object: the values don't render them, and somebody wrote them.

Installing again leaves them as they are.

A field is foreign only if it differs from what the API server would make of the rendered object
today, and if an entry of managedFields names who wrote it. So defaults that the API server fills in
aren't foreign, nor are fields that controllers keep. Source: structured-merge-diff's FieldsV1, v4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from roost.doctor.evidence import name_of, plural
from roost_core.objects.fields import JSONObject

# A step is a key of a mapping, or an index of a list.
Pointer = tuple[str | int, ...]

# Beginnings of the names of managers that keep fields of other people's objects. Their fields
# aren't foreign.
_CONTROLLERS: Final = (
    "kube-controller-manager",
    "kube-scheduler",
    "cloud-controller-manager",
    "openshift-",
    "cert-manager",
    "cainjector",
    "roost-",
)
# Fields that the API server or others choose for each object, by kind; "": of all kinds.
_CHOSEN: Final[Mapping[str, tuple[Pointer, ...]]] = {
    "": (("metadata",), ("status",), ("spec", "replicas")),
    "Service": tuple(
        ("spec", key) for key in ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies")
    ),
    "ServiceAccount": (("secrets",), ("imagePullSecrets",)),
}
# Their users keep these objects up to date, so no field of them is foreign.
SKIPPED_KINDS: Final = ("Lease", "PersistentVolumeClaim")
# Last steps of fields that others keep, wherever the fields are.
_CHOSEN_NAMES: Final = ("caBundle", "nodePort", "kubectl.kubernetes.io/restartedAt")
# Some annotations may be chosen, and others written by hand. So each annotation counts as a field.
_EACH_ON_ITS_OWN: Final = "annotations"


class ForeignField(NamedTuple):
    """A field, who wrote it, and the JSON Patch operation that undoes it."""

    pointer: Pointer
    # The same steps for people: with the names of list items instead of their indexes.
    path: tuple[str | int, ...]
    manager: str
    operation: JSONObject


def find_foreign(live: JSONObject, fresh: JSONObject) -> list[ForeignField]:
    """Find the fields of `live` that are foreign.

    live: the object as the API server has it. fresh: what the API server would make of the rendered
    object if it were created now. The operations can be done in their order: items of a list are
    removed from its end.
    """
    kind = str(live.get("kind", ""))
    if kind in SKIPPED_KINDS:
        return []
    skipped = (*_CHOSEN[""], *_CHOSEN.get(kind, ()))
    owners = _owners(live)
    found = []
    for pointer, path, operation in _differences(live, fresh, (), ()):
        is_skipped = any(pointer[: len(start)] == start for start in skipped)
        if is_skipped or pointer[-1] in _CHOSEN_NAMES:
            continue
        manager = _manager_of(pointer, owners)
        if manager:
            found.append(ForeignField(pointer, path, manager, operation))
    return found


def patch_command(body: JSONObject, fields: Iterable[ForeignField]) -> str:
    """The kubectl command that undoes foreign fields of a rendered object.

    It changes nothing if an item of a list has moved meanwhile. It shows names of items, and what
    the values render or the API server fills in. It shows no value of a Secret.
    """
    namespace = body["metadata"].get("namespace")
    where = f"--namespace {namespace} " if namespace else ""
    operations: list[JSONObject] = []
    for field in fields:
        operations += _tests(field)
        operations.append(field.operation)
    patch = json.dumps(operations).replace("'", "'\\''")
    if body["kind"] == "Secret" and any("value" in field.operation for field in fields):
        return f"kubectl {where}edit secret {body['metadata']['name']}"
    resource = f"{plural(body['kind'])} {body['metadata']['name']}"
    return f"kubectl {where}patch {resource} --type json --patch '{patch}'"


def _tests(field: ForeignField) -> Iterator[JSONObject]:
    """A `test` operation of JSON Patch for each list item on the path to a field, by its name.

    If somebody has inserted an item since, the index is of another item. Then the test fails, and
    the patch changes nothing.
    """
    for end, (step, name) in enumerate(zip(field.pointer, field.path, strict=True), start=1):
        if isinstance(step, int):
            yield {"op": "test", "path": f"{_text(field.pointer[:end])}/name", "value": name}


def in_words(body: JSONObject, fields: Sequence[ForeignField]) -> str:
    """An object with its fields and who wrote them, in words, without values that may be secret."""
    paths = [".".join(map(str, field.path)) for field in fields]
    managers = sorted({field.manager for field in fields})
    return f"{name_of(body)} ({', '.join(paths)}, by {', '.join(managers)})"


def _differences(
    live: object, fresh: object, pointer: Pointer, path: tuple[str | int, ...]
) -> Iterator[tuple[Pointer, tuple[str | int, ...], JSONObject]]:
    """Yield the fields that `fresh` lacks, or has with another value: pointer, path, operation.

    Fields that `live` lacks are left out: another check reports them.
    """
    if isinstance(live, dict) and isinstance(fresh, dict):
        for key, value in live.items():
            key_pointer = (*pointer, key)
            key_path = (*path, key)
            if key in fresh:
                yield from _differences(value, fresh[key], key_pointer, key_path)
            elif key == _EACH_ON_ITS_OWN:
                yield from _differences(value, {}, key_pointer, key_path)
            else:
                yield key_pointer, key_path, {"op": "remove", "path": _text(key_pointer)}
    elif _has_named_items(live) and _has_named_items(fresh):
        fresh_items = {item["name"]: item for item in fresh}
        # From the end: removing an item moves the items after it.
        for index, item in reversed(list(enumerate(live))):
            name = item["name"]
            item_pointer = (*pointer, index)
            item_path = (*path, name)
            if name in fresh_items:
                yield from _differences(item, fresh_items[name], item_pointer, item_path)
            else:
                yield item_pointer, item_path, {"op": "remove", "path": _text(item_pointer)}
    elif live != fresh:
        yield pointer, path, {"op": "replace", "path": _text(pointer), "value": fresh}


def _has_named_items(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a list, each of whose items has another name."""
    if not isinstance(value, list):
        return False
    names = [item.get("name") for item in value if isinstance(item, dict)]
    return len({name for name in names if isinstance(name, str)}) == len(value)


def _text(pointer: Pointer) -> str:
    """A pointer as JSON Pointer's text (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in pointer)


def _owners(live: JSONObject) -> list[tuple[str, list[Pointer]]]:
    """Names of the managers that aren't controllers, each with the fields that it wrote."""
    owners = []
    entries: list[Any] = live["metadata"].get("managedFields") or []
    for entry in entries:
        manager = str(entry.get("manager", ""))
        if not entry.get("subresource") and not manager.startswith(_CONTROLLERS):
            owners.append((manager, [*_leaves(entry.get("fieldsV1") or {}, live, ())]))
    return owners


def _manager_of(pointer: Pointer, owners: Sequence[tuple[str, Sequence[Pointer]]]) -> str:
    """The manager who wrote a field, or something in it; "": no manager is known.

    A manager whose entry names the field goes before a manager whose entry names what it is in.
    Then a manager with few fields goes before one with many: people write few fields by hand.
    """
    ranked: list[tuple[bool, int, str]] = []
    for manager, leaves in owners:
        wrote_field = any(leaf[: len(pointer)] == pointer for leaf in leaves)
        wrote_around = any(pointer[: len(leaf)] == leaf for leaf in leaves)
        if wrote_field or wrote_around:
            ranked.append((not wrote_field, len(leaves), manager))
    return min(ranked)[-1] if ranked else ""


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
            # "." says that the manager wrote the field itself. Its other keys are fields in it.
            has_inner_fields = any(inner_key != "." for inner_key in within)
            # Whoever wrote an item of a list also made it be there.
            if not has_inner_fields or kind == "k":
                yield at
        if within:
            inner = live[step]  # type: ignore[index] # a step of this object
            yield from _leaves(within, inner, at)


def _first(indexes: Iterator[int]) -> int | None:
    return next(indexes, None)


def _has(item: Any, keys: Mapping[str, Any]) -> bool:  # noqa: ANN401 - JSON
    return isinstance(item, dict) and all(item.get(key) == value for key, value in keys.items())
