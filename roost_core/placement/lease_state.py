"""Whether a Lease is still held, judged from repeated observations of it.

Time is an argument. As in client-go's leader election, the time since a renewal is measured by the
observer's own clock, because the clocks of two machines may differ.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from roost_core.objects.timestamps import read_moment
from roost_core.placement.beliefs import LEASE_SECONDS, STALE_DURATIONS


class LeaseState(StrEnum):
    """What is known about a Lease's holder."""

    # The Lease hasn't been read yet.
    UNKNOWN = "unknown"
    # It is being renewed, or its holder gave it back a moment ago, as one does that is being
    # replaced.
    HELD = "held"
    # Nobody has renewed it, or it couldn't be read, for STALE_DURATIONS times its duration.
    STALE = "stale"
    # It doesn't exist, or nobody has ever renewed it.
    NEVER_HELD = "never-held"
    # Its holder has another configuration than the one that is asked for.
    OUTDATED = "outdated"

    @property
    def is_away(self) -> bool:
        """Whether the holder is known not to be at work, or not at this work."""
        return self in (LeaseState.STALE, LeaseState.NEVER_HELD, LeaseState.OUTDATED)


class _Renewal(NamedTuple):
    """A renewal as the Lease has it."""

    holder: str
    time: str


class LeaseObserver:
    """One Lease as one observer sees it.

    `state` and `age_seconds` are safe to read from any thread.
    """

    def __init__(self, host_prefix: str = "", wanted_host: str = "") -> None:
        """wanted_host: of a holder that has the configuration that is asked for; "": none is asked
        for. host_prefix: how the hosts of all holders begin that tell their configuration.

        client-go's identity of a holder is its host's name, an underscore and a UUID. Holders on
        other hosts, as with hostNetwork, don't tell their configuration.
        """
        self._host_prefix = host_prefix
        self._wanted_host = wanted_host
        # The state by the last observation.
        self.state = LeaseState.UNKNOWN
        # The last renewal, as it is written.
        self._renewal: _Renewal | None = None
        # When it happened, by our clock.
        self._renewed_at = 0.0
        self._stale_seconds = float(STALE_DURATIONS * LEASE_SECONDS)
        # How much of the time without the API server need not count.
        self._excusable_seconds = self._stale_seconds
        # When it was read last.
        self._seen_at: float | None = None
        # Since when it can't be read.
        self._blind_since: float | None = None
        # Whether the API server itself says that it can't be read.
        self._is_refused = False

    def age_seconds(self, now: float) -> float | None:
        """Seconds since the last renewal; None if none was observed."""
        return None if self._renewal is None else max(0.0, now - self._renewed_at)

    def see(self, lease: Mapping[str, object] | None, now: float, wall: float) -> None:
        """Take in the Lease as read (None: it doesn't exist).

        now: monotonic seconds. wall: Unix time, used only for the age of the first observed
        renewal.
        """
        if self._blind_since is not None:
            if not self._is_refused:
                # The holder needs the API server, too: time without it doesn't count, up to as long
                # again.
                excused = min(now - self._blind_since, self._excusable_seconds)
                self._excusable_seconds -= excused
                self._renewed_at += excused
            self._blind_since = None
        self._seen_at = now
        spec = lease.get("spec") if lease is not None else None
        if isinstance(spec, Mapping):
            self._see_renewal(spec, now, wall)
        if self._renewal is None:
            self.state = LeaseState.NEVER_HELD
        else:
            is_stale = now - self._renewed_at > self._stale_seconds
            if is_stale:
                self.state = LeaseState.STALE
            elif self._is_outdated(self._renewal.holder):
                self.state = LeaseState.OUTDATED
            else:
                self.state = LeaseState.HELD

    def fail(self, now: float, *, is_refused: bool) -> None:
        """Note that the Lease could not be read: what was seen last is believed no longer than a
        silent holder.

        is_refused: the API server answered (401, 403), so the holder could have renewed it
        meanwhile.
        """
        if self._blind_since is None:
            # A look takes seconds to fail where the network is silent.
            self._blind_since = now if self._seen_at is None else self._seen_at
        self._is_refused = is_refused
        # While it can't be read, it doesn't matter why: nobody sees the holder at work. Whether it
        # was refused counts when it can be read again: see `see`.
        is_silent = now - self._blind_since > self._stale_seconds
        most_seconds = self._stale_seconds + self._excusable_seconds
        is_overdue = self._renewal is not None and now - self._renewed_at > most_seconds
        if is_silent or is_overdue:
            self.state = LeaseState.STALE

    def _is_outdated(self, holder: str) -> bool:
        host = holder.rpartition("_")[0]
        tells_configuration = bool(self._wanted_host) and host.startswith(self._host_prefix)
        return tells_configuration and host != self._wanted_host

    def _see_renewal(self, spec: Mapping[str, object], now: float, wall: float) -> None:
        holder = spec.get("holderIdentity") or ""
        renewed = spec.get("renewTime")
        if (
            not isinstance(holder, str)
            or not isinstance(renewed, str)
            or _Renewal(holder, renewed) == self._renewal
        ):
            return
        # A holder that stops gives the Lease back: it empties `holderIdentity`, renews a last time,
        # and sets a duration of a second. Seen first, that is a renewal like any other; later, it
        # mustn't prolong the previous one.
        was_given_back = not holder
        if was_given_back and self._renewal is not None:
            return
        written = read_moment(renewed)
        is_first = self._renewal is None
        self._renewal = _Renewal(holder, renewed)
        self._renewed_at = now
        if is_first and written is not None:
            self._renewed_at = now - max(0.0, wall - written)
        duration_seconds = float(LEASE_SECONDS)
        written_seconds = spec.get("leaseDurationSeconds")
        if type(written_seconds) is int and written_seconds > 0 and not was_given_back:
            duration_seconds = float(written_seconds)
        self._stale_seconds = STALE_DURATIONS * duration_seconds
        self._excusable_seconds = self._stale_seconds
