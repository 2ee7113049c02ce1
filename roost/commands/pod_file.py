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


def left_out(pod: Mapping[str, Any]) -> str:
    """What no verdict on a pod takes into account; "" if all is."""
    return _CLAIMS if (pod.get("spec") or {}).get("resourceClaims") else ""


def read_pod_file(given: str) -> dict[str, Any]:
    """The pod of a file, of stdin (`-`), or of JSON that is the argument itself.

    Raises UsageError.
    """
    name = "stdin" if given == "-" else "the argument" if given.startswith("{") else given
    try:
        text = (
            sys.stdin.read()
            if given == "-"
            else given
            if given.startswith("{")
            else Path(given).read_text("utf-8")
        )
        pod = load_foreign(text)
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
