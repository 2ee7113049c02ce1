"""Studies: values files that show what one part of a policy does, to replay beside the shipped
ones.

A study is a file in `lab/benchmarks/policies`; its first line says what it is. A comment
`# base: name` names the policy or study that its values are laid over, and
`# assumptions: {key: value}` the simulator's assumptions that it needs.

    python -m benchmarks.studies              what there is
    python -m benchmarks.studies gate-label   the options of `roost simulate` that replay it
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from roost_lab.simulator.setup import shipped_policies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FOLDER: Final = Path(__file__).parent / "policies"
_ASSUMPTIONS: Final = re.compile(r"^# assumptions: (\{.*\})$", re.MULTILINE)
_BASE: Final = re.compile(r"^# base: (\S+)$", re.MULTILINE)


def studies() -> dict[str, Path]:
    """Name -> values file of each study, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def policy_files() -> dict[str, Path]:
    """Name -> values file: the shipped policies, then the studies."""
    return shipped_policies.policy_files() | studies()


def values_files(name: str) -> list[str]:
    """The policy's values files; each is laid over those before it.

    Raises KeyError for an unknown name.
    """
    base = _BASE.search(_text(name))
    return [*(values_files(base[1]) if base is not None else ()), str(policy_files()[name])]


def describe(name: str) -> str:
    """As `shipped_policies.describe`, of studies too."""
    return shipped_policies.description_in(_text(name))


def assumptions_of(name: str) -> Mapping[str, Any]:
    """Fields of `Assumptions` that the policy needs to differ; mostly none.

    Raises KeyError for an unknown name.
    """
    match = _ASSUMPTIONS.search(_text(name))
    settings: dict[str, Any] = {} if match is None else yaml.safe_load(match[1])
    return settings


def _text(name: str) -> str:
    return policy_files()[name].read_text(encoding="utf-8")


def main(names: Sequence[str]) -> int:
    """Print the studies, or the options of some; 2 for unknown ones."""
    unknown = [name for name in names if name not in policy_files()]
    if unknown:
        print(
            f"{unknown[0]}: found no such study, expected one of {', '.join(policy_files())}",
            file=sys.stderr,
        )
        return 2
    for name in names:
        needs = "".join(
            f" --set {key}={str(value).lower()}" for key, value in assumptions_of(name).items()
        )
        print(f"--values {','.join(values_files(name))}{needs}")
    for name in () if names else studies():
        print(f"{name:24}{describe(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
