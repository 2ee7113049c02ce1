"""Whether this replica is ready, and if not, why.

Owns the text of /readyz: one line a check, as the API server's own /readyz?verbose has them.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Readiness(NamedTuple):
    """One check's result.

    `detail` is shown in both cases: a fault may be reported without being unready.
    """

    passed: bool
    detail: str = ""


Check = Callable[[], Readiness]


def check_all(checks: Mapping[str, Check]) -> tuple[bool, str]:
    """Return whether all checks pass, and a line for each."""
    results = {name: check() for name, check in checks.items()}
    lines = [
        f"[{'+' if result.passed else '-'}]{name} {'ok' if result.passed else 'failed'}"
        + (f": {result.detail}" if result.detail else "")
        for name, result in results.items()
    ]
    ready = all(result.passed for result in results.values())
    return ready, "\n".join([*lines, "ready" if ready else "not ready", ""])
