"""Faults as GitHub reads them, so that each one stands at its line in a pull request."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from generator.faults import Fault

FORMATS: Final = ("text", "github")
# Severity -> what GitHub calls it.
_LEVELS: Final = {"error": "error", "warning": "warning", "hint": "notice"}


def show_faults(faults: Sequence[Fault], form: str) -> str:
    """The faults in one of `FORMATS`, a line each."""
    if form == "text":
        return "".join(f"{fault}\n" for fault in faults)
    return "".join(annotation(str(one), _LEVELS[one.severity], one.file, one.line, one.key) for one in faults)


def annotation(text: str, level: str = "error", file: str = "", line: int = 0, title: str = "") -> str:
    """A workflow command of GitHub's; without a place when `file` isn't one (`--set`)."""
    if not Path(file).is_file():
        file, line = "", 0
    # From the repository's top, where GitHub looks for it; a job may run in a folder below.
    path = file and os.path.relpath(file, os.environ.get("GITHUB_WORKSPACE") or ".")
    given = {"file": path, "line": str(line or ""), "title": title}
    escaped = {name: _escaped(value).replace(":", "%3A").replace(",", "%2C") for name, value in given.items()}
    said = ",".join(f"{name}={value}" for name, value in escaped.items() if value)
    return f"::{level} {said}::{_escaped(text)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
