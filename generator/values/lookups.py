"""Look up values that may have any type, or may be missing."""

from __future__ import annotations

from generator.values.merge import Values


def mapping(value: object) -> Values:
    """`value` if it is a map, else {}; also for null."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[object]:
    """`value` if it is a list, else []."""
    return value if isinstance(value, list) else []


def child(values: object, *keys: str) -> object:
    """The value at a path of keys, from the outermost key to the innermost. None: it is missing."""
    found = values
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def number(value: object) -> float:
    """`value` if it is a number, else 0."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def text(value: object) -> str:
    """`value` if it is text, else ""."""
    return value if isinstance(value, str) else ""


def secret_names(secrets: object) -> list[str]:
    """The names of pull secrets, which are written as a name or as {name: NAME}."""
    named = [
        secret if isinstance(secret, str) else child(secret, "name") for secret in listing(secrets)
    ]
    return [name for name in named if isinstance(name, str) and name]
