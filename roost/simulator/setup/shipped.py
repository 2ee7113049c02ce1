"""Find the values files that are shipped as policies to compare with, and what each says of itself.

A shipped policy is a file in roost/simulator/policies: its name is the policy's, its first line a comment that says
what it is, and a comment `# assumptions: {key: value}` what it needs the world to be, where values can't say it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER: Final = Path(__file__).parents[1] / "policies"
_ASSUMPTIONS: Final = re.compile(r"^# assumptions: (\{.*\})$", re.MULTILINE)


def policy_files() -> dict[str, Path]:
    """Name -> values file, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def describe(name: str) -> str:
    """What the policy is, in one line. Raises KeyError for a name that isn't shipped."""
    return _text(name).partition("\n")[0].removeprefix("#").strip()


def assumptions_of(name: str) -> Mapping[str, Any]:
    """Fields of `Assumptions` that the policy needs to be otherwise; mostly none. Raises KeyError likewise."""
    found = _ASSUMPTIONS.search(_text(name))
    if found is None:
        return {}
    settings: dict[str, Any] = yaml.safe_load(found[1])
    return settings


@cache
def _text(name: str) -> str:
    return policy_files()[name].read_text(encoding="utf-8")
