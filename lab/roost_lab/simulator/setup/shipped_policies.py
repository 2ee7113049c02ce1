"""Find the values files that are shipped as policies to compare with, and read what they say about
themselves.

A shipped policy is a file in `simulator/policies`. The file's name is the policy's; its first line
is a comment that says what it is.
"""

import re
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parents[1] / "policies"


def policy_files() -> dict[str, Path]:
    """Name -> values file, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def describe(name: str) -> str:
    """What the policy is, in one line. Raises KeyError for an unknown name."""
    return description_in(policy_files()[name].read_text(encoding="utf-8"))


def description_in(values: str) -> str:
    """What a values file says that it is: its first line, a comment."""
    return values.partition("\n")[0].removeprefix("#").strip()


def title_of(name: str) -> str:
    """What the policy is, in a few words: the begin of `describe`. Raises KeyError as it does."""
    return re.split(r"[,:.](?=\s|$)", describe(name))[0]
