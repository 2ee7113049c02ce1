"""Faults in the formats of forges, so that each one stands at its line in a merge request."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from generator.faults import Fault

FORMATS: Final = ("text", "github", "gitlab")
# Severity -> what GitHub and GitLab call it.
_LEVELS: Final = {"error": ("error", "major"), "warning": ("warning", "minor"), "hint": ("notice", "info")}


def show_faults(faults: Sequence[Fault], form: str) -> str:
    """The faults in one of `FORMATS`: lines (text, github) or one JSON document (gitlab: Code Quality)."""
    if form == "text":
        return "".join(f"{fault}\n" for fault in faults)
    if form == "github":
        return "".join(annotation(str(one), _LEVELS[one.severity][0], one.file, one.line, one.key) for one in faults)
    return json.dumps([_gitlab(fault) for fault in faults], indent=2, ensure_ascii=False) + "\n"


def annotation(text: str, level: str = "error", file: str = "", line: int = 0, title: str = "") -> str:
    """A workflow command of GitHub's; without a place when `file` isn't one (`--set`)."""
    if not Path(file).is_file():
        file, line = "", 0
    given = {"file": file and _from_root(file), "line": str(line or ""), "title": title}
    escaped = {name: _escaped(value).replace(":", "%3A").replace(",", "%2C") for name, value in given.items()}
    said = ",".join(f"{name}={value}" for name, value in escaped.items() if value)
    return f"::{level} {said}::{_escaped(text)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _from_root(file: str) -> str:
    """The path from the repository's top, where forges look for it; a job may run in a folder below."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or "."
    return os.path.relpath(file, root) if Path(file).is_file() else file


def _gitlab(fault: Fault) -> dict[str, Any]:
    # Without the line: a fault that moves is the same one.
    same = "\n".join((fault.file, fault.key, fault.found))
    return {
        "description": str(fault),
        "check_name": fault.key or "values",
        "fingerprint": hashlib.sha256(same.encode()).hexdigest(),
        "severity": _LEVELS[fault.severity][1],
        "location": {"path": _from_root(fault.file), "lines": {"begin": fault.line or 1}},
    }
