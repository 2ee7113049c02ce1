"""Whether this replica is ready, and if not, why.

Owns the text of /readyz: one line a check, as the API server's own /readyz?verbose has them.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class ReadyVerdict(NamedTuple):
    """One check's result.

    `detail` is shown in both cases: a fault may be reported without being unready.
    """

    passed: bool
    detail: str = ""


Check = Callable[[], ReadyVerdict]


def check_all(checks: Mapping[str, Check]) -> tuple[bool, str]:
    """Return whether all checks pass, and a line for each."""
    verdicts = {name: check() for name, check in checks.items()}
    lines = [
        f"[{'+' if verdict.passed else '-'}]{name} {'ok' if verdict.passed else 'failed'}"
        + (f": {verdict.detail}" if verdict.detail else "")
        for name, verdict in verdicts.items()
    ]
    ready = all(verdict.passed for verdict in verdicts.values())
    return ready, "\n".join([*lines, "ready" if ready else "not ready", ""])
