"""Compare two sets of objects: by identity, then field by field."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from generator.faults import KeyPath, describe, one_line, printable_lines, show_path
from generator.render.manifests import Identity
from generator.render.order import rank

_CONTEXT_LINES: Final = 1
_MOST_IN_LINE: Final = 5


class FieldChange(NamedTuple):
    """One field that differs; what is missing on a side is `ABSENT`."""

    path: KeyPath
    before: object
    after: object


class ObjectChange(NamedTuple):
    """One object that differs. `kind`: + (only after), - (only before), ~ (both, with `fields`)."""

    kind: str
    identity: Identity
    fields: tuple[FieldChange, ...] = ()


# Stands for a field that isn't there; None is a value.
ABSENT: Final = object()


def compare(
    before: Mapping[Identity, object], after: Mapping[Identity, object]
) -> list[ObjectChange]:
    """List the objects that differ, in the order in which they are applied."""
    changes = []
    for identity in sorted({*before, *after}, key=lambda identity: (rank(identity.kind), identity)):
        if identity not in after:
            changes.append(ObjectChange("-", identity))
        elif identity not in before:
            changes.append(ObjectChange("+", identity))
        else:
            fields = tuple(_fields(before[identity], after[identity], ()))
            if fields:
                changes.append(ObjectChange("~", identity, fields))
    return changes


def _fields(before: object, after: object, path: KeyPath) -> Iterator[FieldChange]:
    # Containers are gone through even when equal: {"a": 1} == {"a": True} in Python.
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            yield from _fields(before.get(key, ABSENT), after.get(key, ABSENT), (*path, str(key)))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(before, after, path)
    elif before != after or not _are_of_one_type(before, after):
        yield FieldChange(path, before, after)


def _are_of_one_type(before: object, after: object) -> bool:
    """Whether two values have one type in JSON, where 1 and 1.0 are one number."""
    types = {type(before), type(after)}
    return len(types) == 1 or types == {int, float}


def _items(before: list[object], after: list[object], path: KeyPath) -> Iterator[FieldChange]:
    old = _by_name(before)
    new = _by_name(after)
    if old is not None and new is not None:
        for name in dict.fromkeys([*old, *new]):
            yield from _fields(old.get(name, ABSENT), new.get(name, ABSENT), (*path, name))
        return
    for index in range(max(len(before), len(after))):
        left = before[index] if index < len(before) else ABSENT
        right = after[index] if index < len(after) else ABSENT
        yield from _fields(left, right, (*path, index))


def _by_name(items: list[object]) -> dict[str, object] | None:
    """Items by their `name`, as Kubernetes tells containers, ports and variables apart; None when
    one lacks a name, or two share it.

    Their order is ignored on purpose: items that only change places are no change.
    """
    named: dict[str, object] = {
        item["name"]: item
        for item in items
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    }
    return named if len(named) == len(items) else None


def sum_up(changes: list[ObjectChange]) -> str:
    """Say in a line how many objects differ and whose replicas, placeholder sets by their names; ""
    of no changes.
    """
    if not changes:
        return ""
    kinds = Counter(change.kind for change in changes)
    counts = []
    if kinds["+"]:
        counts.append(f"{kinds['+']} new")
    if kinds["-"]:
        counts.append(f"{kinds['-']} gone")
    objects = "1 object" if len(changes) == 1 else f"{len(changes)} objects"
    parts = [f"{objects} ({', '.join(counts)})" if counts else objects]
    parts += [
        f"{_short_name(change.identity)} {field.before} → {field.after}"
        for change in changes
        for field in change.fields
        if field.path == ("spec", "replicas") and ABSENT not in (field.before, field.after)
    ]
    hidden = len(parts) - _MOST_IN_LINE
    if hidden > 0:
        parts = [*parts[:_MOST_IN_LINE], f"and {hidden} more"]
    return one_line("; ".join(parts))


def _short_name(identity: Identity) -> str:
    """A placeholder set's name in the values, of its StatefulSet's; other names as they are."""
    return identity.name.rpartition("-placeholder-")[2]


def show(changes: list[ObjectChange]) -> str:
    """Write changes for a reader: `~ Kind namespace/name`, then each field with - and + lines."""
    lines: list[str] = []
    for change in changes:
        lines.append(f"{change.kind} {change.identity}")
        for field in change.fields:
            lines.append(f"    {show_path(field.path)}:")
            shown = _field_lines(field.before, field.after)
            # A Secret's data isn't shown.
            is_data = field.path[:1] in (("data",), ("stringData",))
            if change.identity.kind == "Secret" and is_data:
                shown = ["~ (changed; not shown)"]
            lines.extend(f"      {line}" for line in shown)
    return printable_lines("".join(f"{line}\n" for line in lines))


def _field_lines(before: object, after: object) -> list[str]:
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        compared = difflib.unified_diff(
            before.split("\n"), after.split("\n"), lineterm="", n=_CONTEXT_LINES
        )
        # Without the names of two files, of which there are none, and without line numbers.
        return [line for line in list(compared)[2:] if not line.startswith("@@")]
    sides = (("-", before), ("+", after))
    return [
        f"{sign} {describe(value, longest=400)}" for sign, value in sides if value is not ABSENT
    ]
