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


def show_faults(faults: Sequence[Fault], output_format: str) -> str:
    """The faults in one of `FORMATS`, a line for each fault."""
    if output_format == "text":
        return "".join(f"{fault}\n" for fault in faults)
    return "".join(map(_annotation, faults))


def _annotation(fault: Fault) -> str:
    """A fault as a workflow command of GitHub; without a place if it isn't in a file (`--set`)."""
    properties_given = {}
    if Path(fault.file).is_file():
        # GitHub wants the path from the repository's top. A job may run in a folder below it.
        path = os.path.relpath(fault.file, os.environ.get("GITHUB_WORKSPACE") or ".")
        properties_given = {"file": path, "line": str(fault.line or "")}
    properties_given["title"] = fault.key
    escaped = {
        name: _escaped(value).replace(":", "%3A").replace(",", "%2C")
        for name, value in properties_given.items()
    }
    properties = ",".join(f"{name}={value}" for name, value in escaped.items() if value)
    return f"::{_LEVELS[fault.severity]} {properties}::{_escaped(str(fault))}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
