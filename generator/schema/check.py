"""Hold values against chart/values.schema.json, the schema that Helm enforces too, and say each fault in plain words.

jsonschema has the say. Importing it takes several times as long as a whole render, so `satisfies` looks first: it
knows the few keywords that the schema uses, and only values that it can't accept go to jsonschema. A test holds the two
together.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from generator.faults import Fault, ValuesError
from generator.locations import chart_folder
from generator.schema.patterns import Schema, matches

if TYPE_CHECKING:
    from generator.faults import Path
    from generator.values.merge import Merged

# What a keyword of the schema is given; its shape depends on the keyword.
Json = Any

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


# For values without those that are the defaults still.
_PARTLY: Final[Schema] = {"required": []}


@cache
def read_schema() -> Schema:
    """The chart's schema."""
    schema: Schema = json.loads((chart_folder() / "values.schema.json").read_text(encoding="utf-8"))
    return schema


def validate(merged: Merged) -> None:
    """Raise ValuesError with every fault of merged values; return when they fit the schema."""
    faults = find_faults(merged)
    if faults:
        raise ValuesError(faults)


def find_faults(merged: Merged) -> list[Fault]:
    """Every fault that the schema finds, with file and line."""
    return list(find_faults_by_path(merged).values())


def find_faults_by_path(merged: Merged) -> dict[Path, Fault]:
    """`find_faults`, each under the path that it is about."""
    schema = read_schema()
    # What is still the default needs no second look: a test holds the defaults against the schema.
    changed = {key: value for key, value in merged.values.items() if merged.defaults.get(key, ...) != value}
    required: Json = schema["required"]
    if all(key in merged.values for key in required) and satisfies(changed, schema | _PARTLY, schema):
        return {}
    # jsonschema is slow to import: only once something is wrong.
    from generator.schema.explain import explain  # noqa: PLC0415

    return explain(merged, schema)


def satisfies(value: object, schema: object, root: Schema) -> bool:
    """Return whether `value` fits; False may also mean "can't tell" (a keyword that isn't known here)."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        return False
    return all(_fits(value, keyword, argument, schema, root) for keyword, argument in schema.items())


def _fits(value: object, keyword: str, argument: Json, schema: Schema, root: Schema) -> bool:
    match keyword:
        case "$ref":
            return satisfies(value, _definition(argument, root), root)
        case "type":
            return any(_is_type(value, name) for name in ([argument] if isinstance(argument, str) else argument))
        case "enum":
            return any(type(value) is type(allowed) and value == allowed for allowed in argument)
        case "anyOf":
            return any(satisfies(value, way, root) for way in argument)
        case "allOf":
            return all(satisfies(value, part, root) for part in argument)
        case "$schema" | "$comment" | "title" | "description" | "definitions":
            return True
    if isinstance(value, dict):
        return _object_fits(value, keyword, argument, schema, root)
    if isinstance(value, list):
        return _list_fits(value, keyword, argument, root)
    if isinstance(value, str):
        return _text_fits(value, keyword, argument)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_fits(value, keyword, argument)
    return keyword in _KEYWORDS_OF_OTHER_TYPES


def _object_fits(
    value: dict[str, object],
    keyword: str,
    argument: Json,
    schema: Schema,
    root: Schema,
) -> bool:
    match keyword:
        case "properties":
            return all(satisfies(value[key], under, root) for key, under in argument.items() if key in value)
        case "additionalProperties":
            listed: Json = schema.get("properties", {})
            return argument is True or all(satisfies(value[key], argument, root) for key in value if key not in listed)
        case "propertyNames":
            return all(satisfies(name, argument, root) for name in value)
        case "required":
            return all(name in value for name in argument)
        case "minProperties":
            return bool(len(value) >= argument)
        case "maxProperties":
            return bool(len(value) <= argument)
    return keyword in _KEYWORDS_OF_OTHER_TYPES


def _list_fits(value: list[object], keyword: str, argument: Json, root: Schema) -> bool:
    match keyword:
        case "items":
            return all(satisfies(item, argument, root) for item in value)
        case "minItems":
            return bool(len(value) >= argument)
        case "maxItems":
            return bool(len(value) <= argument)
        case "uniqueItems":
            # Lists of text only; others go to jsonschema.
            return all(isinstance(item, str) for item in value) and len({str(item) for item in value}) == len(value)
    return keyword in _KEYWORDS_OF_OTHER_TYPES


def _text_fits(value: str, keyword: str, argument: Json) -> bool:
    match keyword:
        case "pattern":
            return matches(argument, value)
        case "maxLength":
            return bool(len(value) <= argument)
    return keyword in _KEYWORDS_OF_OTHER_TYPES


def _number_fits(value: float, keyword: str, argument: float) -> bool:
    match keyword:
        case "minimum":
            return value >= argument
        case "maximum":
            return value <= argument
    return keyword in _KEYWORDS_OF_OTHER_TYPES


# A keyword says nothing of values of other types. One that isn't listed isn't known here: then jsonschema decides.
_KEYWORDS_OF_OTHER_TYPES: Final = frozenset(
    {
        *("properties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties"),
        *("items", "minItems", "maxItems", "uniqueItems", "pattern", "maxLength", "minimum", "maximum"),
    }
)


def _definition(reference: str, root: Schema) -> object:
    definitions = root.get("definitions")
    return definitions.get(reference.removeprefix("#/definitions/")) if isinstance(definitions, dict) else None


def _is_type(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])
