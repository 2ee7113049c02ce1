"""Find the values files that are shipped as policies to compare with, and read what they say about themselves.

A shipped policy is a file in `simulator/policies`, a study a file in its folder `studies`. The file's name is the
policy's; its first line is a comment that says what it is. A comment `# base: name` names the policy that its
values are laid over, and `# assumptions: {key: value}` names the assumptions that it needs.
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
_BASE: Final = re.compile(r"^# base: (\S+)$", re.MULTILINE)


def policy_files() -> dict[str, Path]:
    """Name -> values file: the policies that people choose between, then the studies, each by name."""
    files = [*sorted(_FOLDER.glob("*.yaml")), *sorted(_FOLDER.glob("studies/*.yaml"))]
    return {path.stem: path for path in files}


def is_study(name: str) -> bool:
    """Whether the policy only serves to compare one part with another. Raises KeyError for an unknown name."""
    return policy_files()[name].parent != _FOLDER


def values_files(name: str) -> list[str]:
    """The policy's values files; each is laid over those before it. Raises KeyError for an unknown name."""
    base = _BASE.search(_text(name))
    return [*(values_files(base[1]) if base is not None else ()), str(policy_files()[name])]


def describe(name: str) -> str:
    """What the policy is, in one line. Raises KeyError for an unknown name."""
    return _text(name).partition("\n")[0].removeprefix("#").strip()


def assumptions_of(name: str) -> Mapping[str, Any]:
    """Fields of `Assumptions` that the policy needs to differ; mostly none. Raises KeyError for an unknown name."""
    match = _ASSUMPTIONS.search(_text(name))
    if match is None:
        return {}
    settings: dict[str, Any] = yaml.safe_load(match[1])
    return settings


@cache
def _text(name: str) -> str:
    return policy_files()[name].read_text(encoding="utf-8")
