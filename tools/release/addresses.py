"""Where Roost is published: `release.toml`, and the environment before it.

python -m tools.release.addresses image    print one; exit 1 with what to do if it isn't known
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE: Final = Path(__file__).resolve().parents[2] / "release.toml"
# What an address must look like, in words and as a pattern.
_SHAPES: Final = {
    "repository": ("https://HOST/…", r"https://[^/\s]+/\S*[^/\s]"),
    "documentation": (
        "https://HOST/…, without a slash at its end",
        r"https://[^/\s]+(?:/\S*[^/\s])?",
    ),
    "image": ("HOST/NAME without a tag, in lower case", r"[a-z0-9.:-]+(?:/[a-z0-9._-]+)+"),
    "charts": ("oci://HOST/FOLDER, in lower case", r"oci://[a-z0-9.:-]+(?:/[a-z0-9._-]+)+"),
}


class AddressError(ValueError):
    """An address isn't known, or isn't one; the message says where to write it."""


class Addresses(NamedTuple):
    """Each "" if it isn't known."""

    repository: str = ""
    documentation: str = ""
    image: str = ""
    charts: str = ""


def read_addresses(environment: Mapping[str, str], file: Path = FILE) -> Addresses:
    """ROOST_REPOSITORY and its like before the file's entries. Raises AddressError."""
    listed = tomllib.loads(file.read_text(encoding="utf-8"))["addresses"]
    found = {}
    for name, (shape, pattern) in _SHAPES.items():
        variable = f"ROOST_{name.upper()}"
        value = environment.get(variable) or listed[name]
        # Forges' own names of owners may have capitals, registries' never do.
        value = value.lower() if name in ("image", "charts") else value
        if value and not re.fullmatch(pattern, value):
            raise AddressError(
                f"{variable}, or addresses.{name} of {file.name}: found {value!r}, expected"
                f" {shape}."
            )
        found[name] = value
    return Addresses(**found)


def main(arguments: list[str]) -> int:
    """0: printed; 1: not known; 2: wrong usage."""
    if len(arguments) != 1 or arguments[0] not in _SHAPES:
        print(f"usage: python -m tools.release.addresses {'|'.join(_SHAPES)}", file=sys.stderr)
        return 2
    (name,) = arguments
    try:
        value: str = getattr(read_addresses(os.environ), name)
    except AddressError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    if not value:
        said = (
            f"addresses.{name} of {FILE.name} is empty. Write it there, or set"
            f" ROOST_{name.upper()}."
        )
        print(f"release: {said}", file=sys.stderr)
        return 1
    print(value)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
