"""Run the planners while this replica leads: snapshot, plan, apply, wait for news.

Plans are made at once when something changed that a node or a user waits for, later for the rest, and never more often
than their own cost allows; at rest they are made every RESYNC_SECONDS, which is what "within one sync" means.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from roost.controllers.contract.actions import Outcome, Planned
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.runtime.budget import WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roost.controllers.contract.planner import Planner
    from roost.controllers.runtime.apply import Applier
    from roost.controllers.runtime.metrics import Metrics

log = logging.getLogger(__name__)

RESYNC_SECONDS: Final = 30.0
# News come in bursts: a node that joins is written a dozen times within a second.
SETTLE_SECONDS: Final = 0.2
# Planning takes at most a tenth of one core, however much happens; but news never wait longer than the second.
REST_FACTOR: Final = 9.0
MAX_REST_SECONDS: Final = 3.0
# Users come and go all the time, and their pods change no fact by themselves: for these, planning takes at most half
# a hundredth of a core.
MINOR_SETTLE_SECONDS: Final = 1.0
MINOR_REST_FACTOR: Final = 199.0
# How often a leader at rest looks whether it still leads.
LEASE_LOOK_SECONDS: Final = 1.0
# After a failed write: the watch that should have told us more may lag.
FAILURE_REST_SECONDS: Final = 5.0
# What a fault outside of any plan is counted under.
TURN: Final = "loop"
# Longer in one cycle: something hangs, and the pod had better be restarted.
STUCK_SECONDS: Final = 300.0
# Longer without a sign of progress, or with nothing but failures of a plan that others rely on: this replica gives its
# Lease back, so that another one may lead, or the webhook learns that nobody keeps the nodes' labels true. One request
# takes 20 s at most.
SILENT_SECONDS: Final = 25.0
# After that it may try again: nobody else may be there.
UNFIT_SECONDS: Final = 300.0


class Loop:
    """One thread that plans and applies. `wake` may be called from any thread."""

    def __init__(
        self,
        planners: Sequence[Planner],
        snapshot: Callable[[], Snapshot],
        applier: Applier,
        metrics: Metrics,
        *,
        is_leader: Callable[[], bool],
        is_synced: Callable[[], bool],
        follow: Callable[[], None] = lambda: None,
        vital: frozenset[str] = frozenset(),
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare. Nothing is planned before `is_synced`, nor while another replica leads.

        follow: called instead of `snapshot` while nothing is planned, so that changes don't pile up.
        vital: names of planners without which this replica had better not lead.
        """
        self._planners = tuple(planners)
        self._snapshot = snapshot
        self._applier = applier
        self._metrics = metrics
        self._is_leader = is_leader
        self._is_synced = is_synced
        self._follow = follow
        self._wall = wall
        self._steady = steady
        self._news = threading.Condition()
        self._has_news = False
        self._has_minor_news = False
        self._led = False
        self._vital = vital
        self._alive_at = self._progress_at = steady()
        # Since when a vital plan has failed, again and again.
        self._failing_since: dict[str, float] = {}

    def wake(self) -> None:
        """Say that something changed."""
        # Most news find that others came before them: no lock for these.
        if not self._has_news:
            with self._news:
                self._has_news = True
                self._news.notify()

    def wake_later(self) -> None:
        """Say that something changed that can wait a little."""
        if not self._has_minor_news:
            with self._news:
                self._has_minor_news = True
                self._news.notify()

    @property
    def is_alive(self) -> bool:
        """Whether the loop still turns."""
        return self._steady() - self._alive_at < STUCK_SECONDS

    def progressed(self) -> None:
        """Say that a step is done: the next one isn't waited for yet."""
        self._progress_at = self._steady()

    @property
    def is_working(self) -> bool:
        """Whether this replica does, or could do, a leader's work: it goes on, and its vital plans are made."""
        now = self._steady()
        if now - self._progress_at > SILENT_SECONDS:
            return False
        failing = min(self._failing_since.values(), default=now)
        return not SILENT_SECONDS < now - failing < UNFIT_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Plan and apply until `stop`."""
        while not stop.is_set():
            began_at = self._steady()
            self._alive_at = self._progress_at = began_at
            # What comes from here on may be missing in the snapshot.
            self._has_news = self._has_minor_news = False
            try:
                wait_seconds = self.turn()
                self._failing_since.pop(TURN, None)
            except Exception:  # a loop that ends would leave a leader that does nothing
                log.exception("turn failed")
                self._metrics.count_plan_failure(TURN)
                self._note_failure(TURN, began_at)
                wait_seconds = FAILURE_REST_SECONDS
            ended_at = self._progress_at = self._steady()
            took_seconds = ended_at - began_at
            if stop.wait(min(MAX_REST_SECONDS, max(SETTLE_SECONDS, REST_FACTOR * took_seconds))):
                break
            minor_from = ended_at + max(MINOR_SETTLE_SECONDS, MINOR_REST_FACTOR * took_seconds)
            self._wait_for_news(minor_from, ended_at + wait_seconds)

    def _wait_for_news(self, minor_from: float, at_the_latest: float) -> None:
        with self._news:
            # A Lease that is lost, or had, is no news of the cluster, but is to be seen at once.
            while not self._has_news and self._is_leader() == self._led:
                until = min(at_the_latest, minor_from) if self._has_minor_news else at_the_latest
                left_seconds = until - self._steady()
                if left_seconds <= 0:
                    return
                self.progressed()
                self._news.wait(min(left_seconds, LEASE_LOOK_SECONDS))

    def turn(self) -> float:
        """Plan and apply once, if this replica may; return how many seconds to wait when nothing changes."""
        leads = self._is_leader()
        self._metrics.show_leader(leads)
        if leads != self._led:
            self._led = leads
            for planner in self._planners:
                planner.forget()
            if leads:
                # Whoever led before may have spent this minute's evictions.
                self._applier.evictions.spend_all()
        if not leads or not self._is_synced():
            self._follow()
            # The Lease is asked for every two seconds.
            return 1.0
        snapshot = self._snapshot()
        wait_seconds = RESYNC_SECONDS
        for planner in self._planners:
            wait_seconds = min(wait_seconds, self._run_planner(planner, snapshot))
        self._metrics.show_budgets(
            {"writes": self._applier.writes.left, "evictions": self._applier.evictions.left},
            self._applier.evictions.per_minute,
        )
        return wait_seconds

    def _run_planner(self, planner: Planner, snapshot: Snapshot) -> float:
        now = Moment(self._wall(), self._steady())
        try:
            planned = planner.plan(snapshot, now)
            self._metrics.show_plan(planner.name, planned.gauges, self._steady() - now.steady)
            self._failing_since.pop(planner.name, None)
        except Exception:  # one controller's fault must not stop the others; nothing of a broken plan is carried out
            log.exception("plan failed controller=%s", planner.name)
            self._metrics.count_plan_failure(planner.name)
            if planner.name in self._vital:
                self._note_failure(planner.name, now.steady)
            return RESYNC_SECONDS if planner.name not in self._vital else FAILURE_REST_SECONDS
        done = self._applier.apply(planned.actions)
        self._metrics.count_done(planner.name, done)
        planner.note(done, Moment(self._wall(), self._steady()))
        wait_seconds = RESYNC_SECONDS if planned.wake_after_seconds is None else max(0.0, planned.wake_after_seconds)
        outcomes = {one.outcome for one in done}
        if Outcome.HELD_BACK in outcomes:
            wait_seconds = min(wait_seconds, max(SETTLE_SECONDS, self._applier.seconds_until_next()))
        if Outcome.FAILED in outcomes:
            wait_seconds = min(wait_seconds, FAILURE_REST_SECONDS)
        return wait_seconds

    def _note_failure(self, name: str, now: float) -> None:
        since = self._failing_since.setdefault(name, now)
        if now - since >= UNFIT_SECONDS:
            # Tried again after the rest, and failed again: it begins anew.
            self._failing_since[name] = now


def show_plan(planners: Sequence[Planner], snapshot: Snapshot, now: Moment) -> str:
    """Describe what each planner would do now, in lines.

    As a leader of a minute would: a new one counts the minute before it as spent, and would show nothing that has a
    budget.
    """
    lines: list[str] = []
    for planner in planners:
        planner.plan(snapshot, now)
        later = Moment(now.wall, now.steady + WINDOW_SECONDS + 1.0)
        planned: Planned[Any] = planner.plan(snapshot, later)
        count = len(planned.actions)
        lines.append(f"{planner.name}: {count} action{'' if count == 1 else 's'}")
        lines.extend(f"  {action}" for action in planned.actions)
    return "".join(f"{line}\n" for line in lines)
