"""Tell which keys a value in the chart may have, and of which type: what the compiler checks paths
against.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a value: the JSON Schemas of which it fulfils one.

    No schema: nothing is known.
    """

    alternatives: tuple[Mapping[str, object], ...]
    definitions: Mapping[str, object]

    @classmethod
    def of(cls, schema: object, definitions: Mapping[str, object]) -> Shape:
        """Follow `$ref`, `anyOf`, `oneOf` and `allOf` of one schema."""
        return cls(tuple(_alternatives(schema, definitions)), definitions)

    def types(self) -> frozenset[str]:
        """JSON types that the value may have; empty when that isn't known."""
        named_types: set[str] = set()
        for schema in self.alternatives:
            given = schema.get("type")
            if isinstance(given, str):
                named_types.add(given)
            elif isinstance(given, list):
                named_types.update(given)
            elif isinstance(
                given := schema.get("enum", [schema["const"]] if "const" in schema else None), list
            ):
                named_types.update(_json_type(value) for value in given)
            else:
                return frozenset()
        return frozenset(named_types)

    def key(self, name: str) -> Shape | None:
        """The value under `name`; None when no schema allows that key."""
        known = [
            schema
            for schema in self.alternatives
            if "object" in Shape((schema,), {}).types() or not schema
        ]
        if not known:
            return None if self.types() else self
        schemas: list[Mapping[str, object]] = []
        allowed = False
        for schema in known:
            properties = schema.get("properties")
            if isinstance(properties, Mapping) and name in properties:
                under = properties[name]
            else:
                under = _value_schema(schema, name)
                if under is False:
                    continue
            allowed = True
            schemas.extend(_alternatives(under, self.definitions))
        return Shape(tuple(schemas), self.definitions) if allowed else None

    def value(self) -> Shape:
        """Any value of a map."""
        schemas: list[Mapping[str, object]] = []
        for schema in self.alternatives:
            properties = schema.get("properties")
            entries = list(properties.values()) if isinstance(properties, Mapping) else []
            # Beside named entries, only what the schema says itself: defaults tell nothing of
            # others.
            if not entries or {"patternProperties", "additionalProperties"} & schema.keys():
                entries.append(_value_schema(schema))
            for under in entries:
                if under is not False:
                    schemas.extend(_alternatives(under, self.definitions))
        return Shape(tuple(schemas), self.definitions)

    def item(self) -> Shape:
        """Any item of a list."""
        schemas: list[Mapping[str, object]] = []
        for schema in self.alternatives:
            if "array" in Shape((schema,), {}).types():
                schemas.extend(_alternatives(schema.get("items", {}), self.definitions))
        return Shape(tuple(schemas), self.definitions)


def _value_schema(schema: Mapping[str, object], name: str | None = None) -> object:
    """The schema of a map's entries that are no named property; False when there are none."""
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping):
        fitting = [
            under for pattern, under in patterns.items() if name is None or re.search(pattern, name)
        ]
        if fitting:
            return {"anyOf": fitting}
    return schema.get("additionalProperties", {})


def _alternatives(
    schema: object, definitions: Mapping[str, object]
) -> Iterator[Mapping[str, object]]:
    if not isinstance(schema, Mapping):
        yield {}
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _alternatives(definitions.get(reference.rpartition("/")[2]), definitions)
        return
    for choice in ("anyOf", "oneOf"):
        choices = schema.get(choice)
        # A choice that only adds `required` or the like to a schema with its own type is no
        # alternative of types.
        if isinstance(choices, list) and "type" not in schema:
            for chosen in choices:
                yield from _alternatives(chosen, definitions)
            return
    parts = schema.get("allOf")
    if isinstance(parts, list) and "type" not in schema:
        yield from _alternatives(parts[0], definitions)
        return
    yield schema


def _json_type(value: object) -> str:
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), "null")


def _schema_of(value: object) -> dict[str, object]:
    """A schema that the default `value` fulfils; null, {} and [] tell nothing, and keys without a
    default may come.
    """
    kind = _json_type(value)
    if value is None or value in ({}, []):
        return {}
    if isinstance(value, dict):
        properties = {key: _schema_of(under) for key, under in value.items()}
        return {"type": kind, "properties": properties}
    if isinstance(value, list):
        return {"type": kind, "items": {"anyOf": [_schema_of(item) for item in value]}}
    return {"type": kind}


def read_shape(chart: Path) -> Shape:
    """What may stand in the values: by the chart's schema, else (none written yet) by its
    defaults.
    """
    schema_file = chart / "values.schema.json"
    if schema_file.exists():
        schema = json.loads(schema_file.read_text())
    else:
        schema = _schema_of(yaml.safe_load((chart / "values.yaml").read_text()))
    definitions = schema.get("$defs") or schema.get("definitions") or {}
    return Shape.of(schema, definitions)
