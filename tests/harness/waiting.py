"""Wait for a cluster to reach a state, and say what was missing when it doesn't.

Owns polling. Guarantee: every wait ends, and its error carries what was last seen.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class WaitError(AssertionError):
    """A state didn't come in time.

    An AssertionError, so that a test that waits in vain fails rather than errors.
    """


def wait_until(
    predicate: Callable[[], T | None],
    timeout_seconds: float = 30.0,
    what: str = "",
    *,
    interval_seconds: float = 0.05,
    explain: Callable[[], object] | None = None,
) -> T:
    """Call `predicate` until it returns something true, and return that.

    what: the state waited for, as the end of "waited 30 s for ...". explain: called once on
    failure, to say what stands instead. An exception of the predicate ends the wait: one that is
    expected is the predicate's to catch.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        if found := predicate():
            return found
        if time.monotonic() >= deadline:
            wanted = what or getattr(predicate, "__name__", "a state")
            seen = f"; found {explain()}" if explain else f"; last result: {found!r}"
            raise WaitError(f"waited {timeout_seconds:g} s for {wanted}{seen}")
        time.sleep(interval_seconds)
