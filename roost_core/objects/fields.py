"""Read parts of an object's JSON: null and absent are the same, and a wrong type is an error that names the place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

JSONObject = dict[str, Any]

# Stands for an absent object; never written to.
NOTHING: Final[JSONObject] = {}


class MalformedObjectError(Exception):
    """The object can't be read as what it should be. The message says where, without the object's values."""


def child_object(parent: Mapping[str, Any], key: str, where: str) -> JSONObject | None:
    """The object under `key`, None when it is absent or null. Raises MalformedObjectError when it is something else."""
    value = parent.get(key)
    if value is None:
        return None
    if type(value) is not dict:
        raise MalformedObjectError(f"{where}.{key} is not an object")
    return value


def child_list(parent: Mapping[str, Any], key: str, where: str) -> list[Any] | None:
    """The list under `key`, None when it is absent or null. Raises MalformedObjectError when it is something else."""
    value = parent.get(key)
    if value is None:
        return None
    if type(value) is not list:
        raise MalformedObjectError(f"{where}.{key} is not a list")
    return value


def child_text(parent: Mapping[str, Any], key: str, where: str) -> str:
    """The string under `key`, "" when it is absent or null. Raises MalformedObjectError when it is something else."""
    value = parent.get(key)
    if value is None:
        return ""
    if type(value) is not str:
        raise MalformedObjectError(f"{where}.{key} is not a string")
    return value


def child_texts(parent: Mapping[str, Any], key: str, where: str) -> Mapping[str, str]:
    """The strings by key under `key`, {} when it is absent or null. Raises MalformedObjectError for anything else."""
    texts = child_object(parent, key, where) or NOTHING
    for value in texts.values():
        if type(value) is not str:
            raise MalformedObjectError(f"{where}.{key} holds something that is not a string")
    return texts


def child_objects(parent: Mapping[str, Any], key: str, where: str) -> list[JSONObject]:
    """The objects under `key`, [] when it is absent or null. Raises MalformedObjectError for anything else."""
    children = child_list(parent, key, where)
    if children is None:
        return []
    for child in children:
        if type(child) is not dict:
            raise MalformedObjectError(f"{where}.{key} holds something that is not an object")
    return children


def child_number(parent: Mapping[str, Any], key: str, where: str) -> int:
    """The integer under `key`, 0 when it is absent or null. Raises MalformedObjectError when it is something else."""
    value = parent.get(key)
    if value is None:
        return 0
    if type(value) is not int:
        raise MalformedObjectError(f"{where}.{key} is not an integer")
    return value
