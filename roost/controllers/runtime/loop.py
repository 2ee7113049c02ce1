"""Run the planners while this replica leads: snapshot, plan, apply, wait for changes.

Plans are made at once after a change that a node or a user waits for, later after others, and never
more often than their own cost allows. Without changes they are made every RESYNC_SECONDS, which is
what "within one sync" means.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from roost.controllers.contract.actions import Outcome, Planned
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.runtime.apply import Applier
from roost.controllers.runtime.budget import WINDOW_SECONDS
from roost.controllers.runtime.metrics import ControllersMetrics

log = logging.getLogger(__name__)

RESYNC_SECONDS: Final = 30.0
# Changes come in bursts: a node that joins is written a dozen times within a second.
SETTLE_SECONDS: Final = 0.2
# Planning takes at most a tenth of one core, however much changes; but no change waits longer than
# MAX_REST_SECONDS.
REST_FACTOR: Final = 9.0
MAX_REST_SECONDS: Final = 3.0
# Users come and go all the time, and no plan waits for their pods: for these, planning takes at
# most half a hundredth of a core.
MINOR_SETTLE_SECONDS: Final = 1.0
MINOR_REST_FACTOR: Final = 199.0
# How often an idle leader checks whether it still leads.
LEASE_LOOK_SECONDS: Final = 1.0
# All plans of a cycle together. Those that come after are put off to the next cycle, and come first
# there.
CYCLE_SECONDS: Final = 8.0
# After a failed write: the watch may lag.
FAILURE_REST_SECONDS: Final = 5.0
# The name under which failures outside of any plan are counted.
TURN: Final = "loop"
# After this long in one cycle, something hangs, and the kubelet should restart the pod.
STUCK_SECONDS: Final = 300.0
# After this long without progress, or with nothing but failures of a vital plan, this replica
# releases its Lease, so that another one may lead, or the webhook learns that nodes' labels are not
# maintained. A request takes 20 s at most.
SILENT_SECONDS: Final = 25.0
# After this long it may lead again: there may be no other replica.
UNFIT_SECONDS: Final = 300.0


class Loop:
    """One thread that plans and applies. `wake` may be called from any thread."""

    def __init__(
        self,
        planners: Sequence[Planner[Any]],
        snapshot: Callable[[], Snapshot],
        applier: Applier,
        metrics: ControllersMetrics,
        *,
        is_leader: Callable[[], bool],
        is_current: Callable[[], bool],
        follow: Callable[[], None] = lambda: None,
        observe: Callable[[Snapshot], None] = lambda _snapshot: None,
        vital: frozenset[str] = frozenset(),
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """is_current: whether every watch has listed, and none is silent. Nothing is planned while
        it is false, nor while another replica leads.

        observe: called with each snapshot before anything is planned. follow: called instead of
        `snapshot` while nothing is planned, so that changes don't pile up. vital: names of planners
        whose repeated failure makes this replica give up leading.
        """
        self._planners = tuple(planners)
        self._snapshot = snapshot
        self._applier = applier
        self._metrics = metrics
        self._is_leader = is_leader
        self._is_current = is_current
        self._follow = follow
        self._observe = observe
        self._wall = wall
        self._steady = steady
        self._news = threading.Condition()
        self._has_news = False
        self._has_minor_news = False
        # Planners that the last cycle had no time for.
        self._put_off: list[Planner[Any]] = []
        # Whether this replica led in its last turn.
        self.leads = False
        self._vital = vital
        self._alive_at = self._progress_at = steady()
        # Since when a vital plan has failed, again and again.
        self._failing_since: dict[str, float] = {}
        # The metric says that this replica leads once it has also had a turn as the leader.
        metrics.ask_leader(lambda: self.leads and is_leader())

    def wake(self) -> None:
        """Plan soon: something changed."""
        # Usually a change is pending already: no lock then.
        if not self._has_news:
            with self._news:
                self._has_news = True
                self._news.notify()

    def wake_later(self) -> None:
        """Plan later: something changed that no node or user waits for."""
        if not self._has_minor_news:
            with self._news:
                self._has_minor_news = True
                self._news.notify()

    @property
    def is_alive(self) -> bool:
        """Whether the loop still runs."""
        return self._steady() - self._alive_at < STUCK_SECONDS

    def progressed(self) -> None:
        """Note that a step is done."""
        self._progress_at = self._steady()

    @property
    def is_working(self) -> bool:
        """Whether this replica is fit to lead: a step was done lately, and its vital plans succeed.

        They may have failed for so long that another try is due.
        """
        now = self._steady()
        if now - self._progress_at > SILENT_SECONDS:
            return False
        failing_seconds = now - min(self._failing_since.values(), default=now)
        is_failing = failing_seconds > SILENT_SECONDS
        may_try_again = failing_seconds >= UNFIT_SECONDS
        return not is_failing or may_try_again

    def run(self, stop: threading.Event) -> None:
        """Plan and apply until `stop`."""
        while not stop.is_set():
            began_at = self._steady()
            self._alive_at = self._progress_at = began_at
            # A change from here on may be missing in the snapshot.
            self._has_news = self._has_minor_news = False
            wait_seconds = self.safe_turn()
            ended_at = self._progress_at = self._steady()
            took_seconds = ended_at - began_at
            if stop.wait(min(MAX_REST_SECONDS, max(SETTLE_SECONDS, REST_FACTOR * took_seconds))):
                break
            minor_from = ended_at + max(MINOR_SETTLE_SECONDS, MINOR_REST_FACTOR * took_seconds)
            self._wait_for_news(minor_from, ended_at + wait_seconds)

    def _wait_for_news(self, minor_from: float, at_the_latest: float) -> None:
        with self._news:
            # Gaining or losing the Lease isn't a change of the cluster, but must be noticed at
            # once.
            while not self._has_news and self._is_leader() == self.leads:
                until = min(at_the_latest, minor_from) if self._has_minor_news else at_the_latest
                seconds_left = until - self._steady()
                if seconds_left <= 0:
                    return
                self.progressed()
                self._news.wait(min(seconds_left, LEASE_LOOK_SECONDS))

    def safe_turn(self) -> float:
        """Do a turn; a failure is logged and counted."""
        began_at = self._steady()
        try:
            wait_seconds = self.turn()
            self._failing_since.pop(TURN, None)
        except Exception:  # a loop that ends would leave a leader that does nothing
            log.exception("turn failed")
            self._metrics.plan_failures.labels(TURN).inc()
            self._note_failure(TURN, began_at)
            return FAILURE_REST_SECONDS
        return wait_seconds

    def turn(self) -> float:
        """Plan and apply once, if this replica may; return the seconds to wait if nothing
        changes.
        """
        leads = self._is_leader()
        if not leads:
            self._metrics.forget_plans()
        if leads != self.leads:
            self.leads = leads
            for planner in self._planners:
                planner.forget()
            if leads:
                # An earlier leader may have used up this minute's evictions.
                self._applier.evictions.spend_all()
        if not leads or not self._is_current():
            self._follow()
            # The Lease is tried every few seconds.
            return 1.0
        snapshot = self._snapshot()
        self._observe(snapshot)
        self._metrics.show_pressed_disks(snapshot.nodes.values())
        wait_seconds = self._run_planners(snapshot)
        self._metrics.show_eviction_budget(self._applier.evictions.per_minute)
        return wait_seconds

    def _run_planners(self, snapshot: Snapshot) -> float:
        began_at = self._steady()
        wait_seconds = RESYNC_SECONDS
        put_off_before = self._put_off
        self._put_off = []
        others = [planner for planner in self._planners if planner not in put_off_before]
        for planner in (*put_off_before, *others):
            self.progressed()
            if self._steady() - began_at > CYCLE_SECONDS:
                log.warning(
                    "plan put off controller=%s: those before it took %.0f s",
                    planner.name,
                    CYCLE_SECONDS,
                )
                self._metrics.plans_put_off.labels(planner.name).inc()
                self._put_off.append(planner)
                wait_seconds = 0.0
            else:
                wait_seconds = min(wait_seconds, self._run_planner(planner, snapshot))
        return wait_seconds

    def _run_planner(self, planner: Planner[Any], snapshot: Snapshot) -> float:
        now = Moment(self._wall(), self._steady())
        try:
            planned = planner.plan(snapshot, now)
            self._metrics.show_plan(planner.name, planned.gauges, self._steady() - now.steady)
            self._failing_since.pop(planner.name, None)
        except Exception:
            # one controller's failure must not stop the others; nothing of a failed plan is carried
            # out
            log.exception("plan failed controller=%s", planner.name)
            self._metrics.plan_failures.labels(planner.name).inc()
            if planner.name in self._vital:
                self._note_failure(planner.name, now.steady)
            return RESYNC_SECONDS if planner.name not in self._vital else FAILURE_REST_SECONDS
        done = self._applier.apply(planned.actions)
        self._metrics.count_done(planner.name, done)
        planner.note(done, Moment(self._wall(), self._steady()))
        wait_seconds = (
            RESYNC_SECONDS
            if planned.wake_after_seconds is None
            else max(0.0, planned.wake_after_seconds)
        )
        outcomes = {outcome for _, outcome in done}
        if Outcome.HELD_BACK in outcomes:
            wait_seconds = min(
                wait_seconds, max(SETTLE_SECONDS, self._applier.seconds_until_next())
            )
        if Outcome.FAILED in outcomes:
            wait_seconds = min(wait_seconds, FAILURE_REST_SECONDS)
        return wait_seconds

    def _note_failure(self, name: str, now: float) -> None:
        since = self._failing_since.setdefault(name, now)
        if now - since >= UNFIT_SECONDS:
            # The controller was tried again after the pause, and failed: the period starts again.
            self._failing_since[name] = now


def show_plan(planners: Sequence[Planner[Any]], snapshot: Snapshot, now: Moment) -> str:
    """Describe in lines what each planner would do now if it had led for a minute.

    A new leader assumes that the last minute's budget was used up, so its first plan would show no
    evictions.
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
