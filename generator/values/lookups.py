"""Look values up that may be of any type, or missing."""

from __future__ import annotations

from generator.values.merge import Values


def mapping(value: object) -> Values:
    """`value` if it is a map, else {}: a null reads as nothing."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[object]:
    """`value` if it is a list, else []."""
    return value if isinstance(value, list) else []


def child(values: object, *keys: str) -> object:
    """What stands under `keys`, one in the other; None when missing."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


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
