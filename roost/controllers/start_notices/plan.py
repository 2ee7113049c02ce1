"""Make one plan of start notices: Events on users' pods that wait, which KubeSpawner shows on the
spawn page.

A pod that starts at once gets none. What is told: that it waits for a node, that a placeholder
gives up its room, that its image is downloaded, and about how long all this lasts. Estimates come
from what this replica saw since it leads, and from what the API server still held then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Gauges, Notice, PlanGauge, Planned
from roost.controllers.contract.notice_count import NoticeCount
from roost.controllers.contract.planner import Controller
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.start_notices import estimates, settings, texts
from roost.controllers.start_notices.hold_ups import PodHoldUp, find_hold_ups
from roost.controllers.start_notices.pulls_of_nodes import BoundPod, NodePulls, follow_pulls
from roost_core.objects.node import Node, node_covers
from roost_core.objects.pod import Pod
from roost_core.objects.selectors import node_matches
from roost_core.placement.hold_ups import HeldUpBy

NAME: Final = "start-notices"
PACE_SECONDS: Final = 1.0

# Reasons of the Events, for programs.
ROOM: Final = "WaitsForNode"
SCHEDULER: Final = "WaitsForScheduler"
GIVES_WAY: Final = "PlaceholderGivesWay"
VOLUME: Final = "WaitsForVolume"
SANDBOX: Final = "WaitsForSandbox"
PREPARING: Final = "PreparesServer"
DOWNLOAD: Final = "DownloadsImage"
LEFT: Final = "StillDownloadsImage"
LONGER: Final = "DownloadTakesLonger"

GAUGES: Final = (
    PlanGauge(
        "start_notices_waiting_pods",
        "Users' pods that wait for a node, a volume, a sandbox, an init container or an image.",
        ("wait",),
    ),
)


class PodNotices(NamedTuple):
    """What was said to one pod's user."""

    # Of its Events, in order.
    reasons: tuple[str, ...] = ()
    # From then on, what is left is said again; Unix time.
    again_at: float = 0.0


class KnownHoldUp(NamedTuple):
    """What holds a pod up, and since when."""

    what: str
    # Unix time.
    began_at: float


@dataclass(frozen=True, slots=True)
class NoticeMemory:
    """What is remembered from plan to plan. Without it a user may be told twice."""

    past: estimates.PastWaits = field(default_factory=estimates.PastWaits)
    pulls: NodePulls = field(default_factory=NodePulls)
    # By uid of pods that wait for a node: since when, in Unix time.
    unschedulable: Mapping[str, float] = field(default_factory=dict)
    # By uid.
    notices: Mapping[str, PodNotices] = field(default_factory=dict)
    # By uid, of pods that are held up.
    held_up: Mapping[str, KnownHoldUp] = field(default_factory=dict)
    notice_count: NoticeCount = field(default_factory=NoticeCount)
    has_planned: bool = False


def plan_start_notices(
    snapshot: Snapshot, memory: NoticeMemory, release: ReleaseDocument, now: Moment
) -> Planned[NoticeMemory]:
    """Tell the users who wait, and learn from the waits that are over."""
    takes_over = not memory.has_planned
    pulls, ended = follow_pulls(snapshot, memory.pulls, now.wall, takes_over=takes_over)
    past = memory.past
    if takes_over:
        past = estimates.earlier_waits(
            snapshot, lambda pod: release.is_users(pod, snapshot.namespaces)
        )
    for image, seconds in ended:
        if seconds >= estimates.LEAST_PULL_SECONDS:
            past = past.with_duration(seconds, *estimates.keys_of_image(image))
    teller = _Teller(memory, pulls, now)
    unschedulable: dict[str, float] = {}
    held_up: dict[str, KnownHoldUp] = {}
    hold_ups = find_hold_ups(snapshot, now.wall)
    waiting = dict.fromkeys(("node", "volume", "sandbox", "init-container", "image"), 0)
    for pod in snapshot.pods.values():
        if pod.phase != "Pending" or pod.leaving or not release.is_users(pod, snapshot.namespaces):
            continue
        if not pod.node_name:
            if pod.unschedulable_since is not None:
                unschedulable[pod.uid] = pod.unschedulable_since
                waiting["node"] += 1
                teller.tell_of_room(pod, past, snapshot.nodes.values())
            elif not pod.gated:
                teller.tell_of_scheduler(pod)
            continue
        since = memory.unschedulable.get(pod.uid)
        node = snapshot.nodes.get(pod.node_name)
        if since is not None and node is not None and estimates.is_new_for(node, since):
            past = past.with_duration(now.wall - since, *estimates.keys_of_pool(pod))
        bound = pulls.bound[pod.uid]
        hold_up = hold_ups.get(pod.uid)
        if hold_up is not None:
            waiting[hold_up.kind] += 1
            known = _known_hold_up(hold_up, memory.held_up.get(pod.uid), now.wall)
            held_up[pod.uid] = known
            teller.tell_of_hold_up(pod, hold_up, now.wall - known.began_at)
        elif bound.place is not None:
            waiting["image"] += 1
            teller.tell_of_pulls(pod, bound, past)
    gauges: Gauges = {GAUGES[0].name: {(what,): float(number) for what, number in waiting.items()}}
    return Planned(
        actions=teller.actions,
        memory=NoticeMemory(
            past=past,
            pulls=pulls,
            unschedulable=unschedulable,
            notices=teller.notices,
            held_up=held_up,
            notice_count=teller.count,
            has_planned=True,
        ),
        wake_after_seconds=min(teller.waits, default=None),
        gauges=gauges,
    )


def _known_hold_up(hold_up: PodHoldUp, before: KnownHoldUp | None, now: float) -> KnownHoldUp:
    """What is remembered of a hold-up: when it began, or when it was seen first."""
    # Each init container counts anew.
    what = f"{hold_up.kind} {hold_up.init_container}"
    if hold_up.since is not None:
        return KnownHoldUp(what, min(hold_up.since, now))
    if before is not None and before.what == what:
        return before
    return KnownHoldUp(what, now)


# A sandbox's error is mostly its network's.
_OF_NETWORK: Final = re.compile(r"network|\bcni\b|\bIPs?\b|address", re.IGNORECASE)
# The reason of the Event, and the sentence, by what holds a pod up.
_HOLD_UPS: Final[Mapping[HeldUpBy | None, tuple[str, str]]] = {
    HeldUpBy.VOLUME: (VOLUME, texts.VOLUME),
    HeldUpBy.SANDBOX: (SANDBOX, texts.SANDBOX),
    None: (PREPARING, texts.PREPARING),
}


class _Teller:
    """Gathers the notices of one plan."""

    def __init__(self, memory: NoticeMemory, pulls: NodePulls, now: Moment) -> None:
        self.actions: list[Notice] = []
        self.notices: dict[str, PodNotices] = {}
        self.waits: list[float] = []
        self.count = memory.notice_count.at(now.steady)
        self._memory = memory
        self._pulls = pulls
        self._now = now

    def tell_of_scheduler(self, pod: Pod) -> None:
        """No scheduler has looked at the pod."""
        passed = self._now.wall - pod.created
        reasons, _ = self._remembered(pod)
        if passed < settings.SCHEDULER_SECONDS:
            self.waits.append(settings.SCHEDULER_SECONDS - passed)
        elif SCHEDULER not in reasons:
            self._tell(pod, SCHEDULER, texts.SCHEDULER)

    def tell_of_room(self, pod: Pod, past: estimates.PastWaits, nodes: Iterable[Node]) -> None:
        """The pod waits for a node."""
        reasons, _ = self._remembered(pod)
        since = pod.unschedulable_since or self._now.wall
        if self._now.wall - since < settings.ROOM_SECONDS:
            self.waits.append(settings.ROOM_SECONDS - (self._now.wall - since))
        elif pod.nominated_node:
            if GIVES_WAY not in reasons:
                self._tell(pod, GIVES_WAY, texts.GIVES_WAY)
        elif ROOM not in reasons:
            usual = estimates.new_node_for(pod, past)
            text = texts.ROOM_UNKNOWN if usual is None else texts.with_estimate(texts.ROOM, usual)
            # A machine like these wouldn't help; whether there are larger ones isn't known.
            alike = [node for node in nodes if node_matches(pod.spec, node.name, node.labels)]
            if alike and not any(
                node_covers(pod.spec.fit_requests, node.allocatable) for node in alike
            ):
                text = texts.TOO_LARGE
            self._tell(pod, ROOM, text)

    def tell_of_hold_up(self, pod: Pod, hold_up: PodHoldUp, passed: float) -> None:
        """The pod's node pulls nothing for it yet."""
        reason, text = _HOLD_UPS[hold_up.by]
        reasons, _ = self._remembered(pod)
        times = reasons.count(reason)
        due = settings.HOLD_UP_SECONDS * settings.HOLD_UP_FACTOR**times
        if passed < due:
            self.waits.append(due - passed)
        else:
            if hold_up.by is HeldUpBy.VOLUME and hold_up.cause.startswith("Multi-Attach"):
                text = texts.VOLUME_ELSEWHERE
            elif hold_up.by is HeldUpBy.SANDBOX and _OF_NETWORK.search(hold_up.cause):
                text = texts.ADDRESS
            self._tell(pod, reason, texts.with_passed(text, passed, hold_up.init_container))

    def tell_of_pulls(self, pod: Pod, bound: BoundPod, past: estimates.PastWaits) -> None:
        """The pod's node pulls its images, perhaps after others."""
        reasons, again_at = self._remembered(pod)
        needed = self._pulls.needed_by(bound)
        passed = self._now.wall - bound.since
        if not needed:
            return
        if passed < settings.PULL_SECONDS:
            self.waits.append(settings.PULL_SECONDS - passed)
            return
        images = [pull.image for pull in needed]
        left = estimates.pulls_left(images, self._now.wall - needed[0].begin, past)
        if left is None:
            # Where the first pull takes longer than any that was seen, nothing honest can be said
            # of the rest.
            if LONGER not in reasons:
                self._tell(pod, LONGER, texts.LONGER)
        elif DOWNLOAD not in reasons:
            others = sum(pull.image not in bound.lacking for pull in needed)
            several = texts.DOWNLOAD_AFTER_ONE if others == 1 else texts.DOWNLOAD_AFTER_SEVERAL
            text = texts.with_estimate(several if others else texts.DOWNLOAD, left, others=others)
            self._tell_left(pod, DOWNLOAD, text, left)
        elif self._now.wall >= again_at:
            if (
                left.median >= settings.WORTH_TELLING_SECONDS
                and len(reasons) < settings.MOST_NOTICES - 1
            ):
                self._tell_left(pod, LEFT, texts.with_estimate(texts.STILL, left), left)
        else:
            self.waits.append(again_at - self._now.wall)

    def _remembered(self, pod: Pod) -> PodNotices:
        """What was said of the pod so far; it is remembered with what is said now."""
        return self.notices.setdefault(pod.uid, self._memory.notices.get(pod.uid, PodNotices()))

    def _tell_left(self, pod: Pod, reason: str, message: str, left: estimates.Estimate) -> None:
        again_at = self._now.wall + max(settings.WORTH_TELLING_SECONDS, left.median / 2)
        self._tell(pod, reason, message, again_at)
        self.waits.append(again_at - self._now.wall)

    def _tell(self, pod: Pod, reason: str, message: str, again_at: float | None = None) -> None:
        before = self._remembered(pod)
        if len(before.reasons) >= settings.MOST_NOTICES:
            return
        if self.count.notices >= settings.MOST_A_MINUTE:
            self.waits.append(self.count.seconds_left(self._now.steady))
            return
        self.count = self.count.plus(1)
        if again_at is None:
            again_at = before.again_at
        self.notices[pod.uid] = PodNotices((*before.reasons, reason), again_at)
        self.actions.append(Notice.on_pod(pod, reason, message))


CONTROLLER: Final = Controller(
    name=NAME,
    read=settings.read_notice_settings,
    plan=plan_start_notices,
    empty=NoticeMemory(),
    gauges=GAUGES,
    pace_seconds=PACE_SECONDS,
)
