"""Read parts of an object's JSON: null and absent are the same, and a wrong type is an error that
names the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")

JSONObject = dict[str, Any]
# The longest name of an object. Source: k8s.io/apimachinery/pkg/api/validation, RFC 1123.
MAX_NAME: Final = 253
# What the parts of an object are that a reader reads: an object with such parts, a list of one
# form, or a plain type.
Shape: TypeAlias = "dict[str, Shape] | list[Shape] | type"
# Strings by any key, as labels are.
TEXTS: Final[Shape] = {"*": str}
_WORDS: Final[Mapping[type, str]] = {
    str: "a string",
    int: "an integer",
    list: "a list",
    dict: "an object",
}

# Stands for an absent object; never written to.
NOTHING: Final[JSONObject] = {}


class MalformedObjectError(Exception):
    """The object can't be read as what it should be.

    The message says where, without the object's values.
    """


def check_shape(value: object, shape: Shape, where: str) -> None:
    """Check all that is going to be read, so that it can be read plainly; absent and null parts are
    fine.

    Raises MalformedObjectError, which names the first place with a wrong type.
    """
    if fault := _find_fault(value, shape):
        raise MalformedObjectError(f"{where}{fault}")


def _find_fault(value: object, shape: Shape) -> str:
    if isinstance(shape, list):
        if type(value) is not list:
            return " is not a list"
        for child in value:
            if fault := _find_fault(child, shape[0]):
                return f"[]{fault}"
        return ""
    if isinstance(shape, type):
        return "" if type(value) is shape else f" is not {_WORDS[shape]}"
    if type(value) is not dict:
        return " is not an object"
    if shape is TEXTS:
        return (
            " holds something that is not a string" if {*map(type, value.values())} - {str} else ""
        )
    for key, part in shape.items():
        child = value.get(key)
        # Most parts are plain ones, and right.
        if child is None or type(child) is part:
            continue
        if fault := _find_fault(child, part):
            return f".{key}{fault}"
    return ""


def _child(parent: Mapping[str, Any], key: str, where: str, kind: type[T]) -> T | None:
    value = parent.get(key)
    if value is None:
        return None
    if type(value) is not kind:
        raise MalformedObjectError(f"{where}.{key} is not {_WORDS[kind]}")
    return value


def child_object(parent: Mapping[str, Any], key: str, where: str) -> JSONObject | None:
    """The object under `key`. Raises MalformedObjectError, as all of these do."""
    return _child(parent, key, where, dict)


def child_list(parent: Mapping[str, Any], key: str, where: str) -> list[Any] | None:
    """The list under `key`."""
    return _child(parent, key, where, list)


def child_text(parent: Mapping[str, Any], key: str, where: str) -> str:
    """The string under `key`; "" without."""
    return _child(parent, key, where, str) or ""


def child_texts(parent: Mapping[str, Any], key: str, where: str) -> Mapping[str, str]:
    """The strings by key under `key`."""
    texts = child_object(parent, key, where) or NOTHING
    for value in texts.values():
        if type(value) is not str:
            raise MalformedObjectError(f"{where}.{key} holds something that is not a string")
    return texts


def child_objects(parent: Mapping[str, Any], key: str, where: str) -> list[JSONObject]:
    """The list of objects under `key`."""
    children = child_list(parent, key, where) or []
    for child in children:
        if type(child) is not dict:
            raise MalformedObjectError(f"{where}.{key} holds something that is not an object")
    return children
