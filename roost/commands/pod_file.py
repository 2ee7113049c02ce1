"""Read the pod that `--pod` names, for `roost doctor` and `roost validate`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generator.faults import UsageError, describe
from roost_core.objects.foreign_yaml import ForeignTextError, load_foreign

_EXPECTED = (
    "expected a Pod in YAML or JSON, such as {metadata: {labels: {component: singleuser-server}}}"
)
_CLAIMS = (
    "Not looked at: its resource claims. Which nodes have the devices is the scheduler's to find."
)


def unchecked_part(pod: Mapping[str, Any]) -> str:
    """A sentence about the part of the pod that no check looks at; "" if all is looked at."""
    return _CLAIMS if (pod.get("spec") or {}).get("resourceClaims") else ""


def read_pod_file(given: str) -> dict[str, Any]:
    """Read the pod that `--pod` gives: a file's name, `-` for stdin, or the pod itself in JSON.

    Raises UsageError for what can't be read, or isn't a Pod.
    """
    name = given
    if given == "-":
        name = "stdin"
    elif given.startswith("{"):
        name = "the argument"
    try:
        pod = load_foreign(_text_of(given))
    except ForeignTextError as error:
        raise UsageError(f"--pod: {name}: found {error}, {_EXPECTED}.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--pod: {name}: {error}; {_EXPECTED}.") from None
    if not isinstance(pod, dict) or pod.get("kind") not in (None, "Pod"):
        found = describe(pod.get("kind") if isinstance(pod, dict) else pod)
        raise UsageError(f"--pod: {name}: found {found}, {_EXPECTED}.")
    for key in ("metadata", "spec"):
        if not isinstance(pod.get(key, {}), dict):
            raise UsageError(f"--pod: {name}: {key}: found {describe(pod[key])}, expected a map.")
    return pod


def _text_of(given: str) -> str:
    if given == "-":
        return sys.stdin.read()
    if given.startswith("{"):
        return given
    return Path(given).read_text("utf-8")
