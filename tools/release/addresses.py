"""Where Roost is published: `release.toml`, and the environment before it.

Owns what is called how in a registry.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Final, NamedTuple

from tools.image import LAB, ROOST
from tools.release.checkout import BuildError
from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE: Final = ROOT / "release.toml"
# What a page's address must look like, in words and as a pattern.
_PAGES: Final = {
    "repository": ("https://HOST/…", r"https://[^/\s]+/\S*[^/\s]"),
    "documentation": (
        "https://HOST/…, without a slash at its end",
        r"https://[^/\s]+(?:/\S*[^/\s])?",
    ),
}
CHART: Final = "chart"
# Beside images' repositories, since one repository can't hold an image and a chart of one tag.
REPOSITORIES: Final = {ROOST: "roost", LAB: "roost-lab", CHART: "charts/roost"}
_HOST: Final = r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?"
_FOLDER: Final = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_ADDRESS: Final = re.compile(rf"({_HOST})((?:/{_FOLDER})*)")
_DOCKER_HUB: Final = ("docker.io", "index.docker.io", "registry-1.docker.io")


class Target(NamedTuple):
    """Where to push: HOST or HOST:PORT, and the folder in it, "" for none."""

    host: str
    folder: str

    def repository(self, name: str) -> str:
        """Where the registry has a part of REPOSITORIES."""
        return f"{self.folder}/{REPOSITORIES[name]}".lstrip("/")

    def address(self, name: str) -> str:
        """The same with the host before it."""
        return f"{self.host}/{self.repository(name)}"


class Addresses(NamedTuple):
    """Each "" if it isn't known. registry: as parse_target reads it."""

    repository: str = ""
    documentation: str = ""
    registry: str = ""


def parse_target(address: str) -> Target:
    """REGISTRY as it was typed. Raises ValueError, whose message says what is wrong with it."""
    expected = "expected HOST/FOLDER, such as registry.example.org/me"
    plain = address.rstrip("/")
    scheme, has_scheme, rest = plain.rpartition("://")
    if has_scheme:
        raise ValueError(f"found {address!r}, {expected}. Leave out {scheme}://: {rest}")
    found = _ADDRESS.fullmatch(plain)
    if found is None and plain != plain.lower():
        raise ValueError(f"found {address!r}, {expected}. Names in registries have no capitals.")
    first, _, folders = plain.partition("/")
    if found is None and re.search(r"[:@]", folders):
        raise ValueError(f"found {address!r}, {expected}. The version is the tag: leave it out.")
    if found is None:
        raise ValueError(f"found {address!r}, {expected}.")
    if not re.search(r"[.:]", first) and first != "localhost":
        raise ValueError(f"found {address!r}, {expected}. {first!r} is no host of a registry.")
    if found[1] in _DOCKER_HUB:
        raise ValueError(
            f"found {address!r}. Docker Hub has no folders, and the chart needs one: charts/roost."
            " Use another registry, or push the images there with docker."
        )
    return Target(found[1], found[2].lstrip("/"))


def read_addresses(environment: Mapping[str, str]) -> Addresses:
    """ROOST_REPOSITORY and its like before the file's entries. Raises BuildError."""
    listed = tomllib.loads(FILE.read_text(encoding="utf-8"))["addresses"]
    found = {}
    for name in Addresses._fields:
        variable = f"ROOST_{name.upper()}"
        value = environment.get(variable) or listed[name]
        try:
            found[name] = _checked(name, value) if value else ""
        except ValueError as error:
            raise BuildError(f"{variable}, or addresses.{name} of {FILE.name}: {error}") from error
    return Addresses(**found)


def _checked(name: str, value: str) -> str:
    if name == "registry":
        # Forges' own names of owners may have capitals, registries' never do.
        parse_target(value.lower())
        return value.lower()
    shape, pattern = _PAGES[name]
    if not re.fullmatch(pattern, value):
        raise ValueError(f"found {value!r}, expected {shape}.")
    return value
