"""Answer one AdmissionReview: read it, find the pod's class, ask its policies, write the patch.

Guarantees: never raises, never answers 5xx; a fault of Roost's own admits the pod as it came, and is counted. Nothing
of a pod's content goes to the log: tokens travel in env, args and image pull settings.
"""

from __future__ import annotations

import logging
import traceback
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.placement.holders import Holders
from roost_core.placement.labels import HOME_TARGET_ANNOTATION
from roost_core.placement.pods import DAEMON_SET, OddPodError, read_pod
from webhook.review import MalformedReviewError, Review, allow, parse_review, uid_of_oversized
from webhook.rules.bounds import MAX_OPERATIONS, MOST, Bound, exceeded
from webhook.rules.facts import Facts, HomePod, pod_key
from webhook.rules.homes import HomeFinder
from webhook.rules.ledger import Ledger, unnamed
from webhook.rules.patch import Annotate, Change, patch_for, without_overflow
from webhook.rules.policies import Case, Degraded, LeftToCluster, Note, Rulebook, requests_alone, verdicts_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_core.placement.settings import Settings

log = logging.getLogger(__name__)

_INTERNAL_WARNING: Final = "Roost: placement rules skipped: internal error, see the webhook's log"


class Result(StrEnum):
    """What came of a review."""

    PATCHED = "patched"
    # The pod carries all its rules already.
    UNCHANGED = "unchanged"
    # It has a class but is none of ours: opt-out, nodeName, DaemonSet …
    SKIPPED = "skipped"
    # It has no class.
    UNMATCHED = "unmatched"
    # Not the creation of a pod.
    IGNORED = "ignored"
    # The object isn't of a pod's shape.
    ODD = "odd"
    # It asks for more than one review may (webhook.bounds).
    BEYOND_BOUNDS = "beyond-bounds"
    # No AdmissionReview: answered 4xx.
    MALFORMED = "malformed"
    # A fault of Roost's own.
    ERROR = "error"


class Answer(NamedTuple):
    """An HTTP answer: status 200 with an AdmissionReview in JSON, or 4xx with a line of text."""

    status: int
    body: bytes


class Outcome(NamedTuple):
    """One review, for metrics."""

    result: Result
    pod_class: str | None = None
    # Why it was skipped, or which bound it was beyond: a word.
    reason: str = ""
    # Why the gate gave way (no-holder, no-holder-fits, nodes-unknown, controllers-stale); "" when it didn't.
    degraded: str = ""
    # Why the pod was left to the cluster's scheduler (stale, never-held); "" when it wasn't.
    left_to_cluster: str = ""
    is_dry_run: bool = False
    seconds: float = 0.0


class _Told(NamedTuple):
    """An answer, and the outcome but for its duration."""

    answer: Answer
    result: Result
    pod_class: str | None = None
    reason: str = ""
    degraded: str = ""
    left_to_cluster: str = ""
    is_dry_run: bool = False


class Admission:
    """Answers reviews, safely from several threads. Settings and facts come from whoever keeps them."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        facts: Callable[[], Facts],
        now: Callable[[], float],
        on_outcome: Callable[[Outcome], None],
    ) -> None:
        """now: seconds of a clock that only grows (time.monotonic)."""
        self._settings = settings
        self._facts = facts
        self._now = now
        self._on_outcome = on_outcome
        self._ledger = Ledger()
        self._homes = HomeFinder(self._ledger)
        self._holders = Holders()
        self._rulebook: Rulebook | None = None

    def review(self, body: bytes) -> Answer:
        """Answer one request."""
        started = self._now()
        told = self._tell(body, started)
        try:
            self._on_outcome(
                Outcome(
                    pod_class=told.pod_class,
                    result=told.result,
                    reason=told.reason,
                    degraded=told.degraded,
                    left_to_cluster=told.left_to_cluster,
                    is_dry_run=told.is_dry_run,
                    seconds=self._now() - started,
                )
            )
        except Exception as error:  # noqa: BLE001 - counting must not cost a pod
            _log_fault("a review's outcome wasn't counted", error)
        return told.answer

    def pod_seen(self, namespace: str, name: str) -> None:
        """Tell that the watch has shown this pod (or its end): from now on the facts count it."""
        self._ledger.forget(pod_key(namespace, name))

    def ring_sizes(self) -> dict[str, int]:
        """Nodes in the ring of each class with a home."""
        facts = self._facts()
        return {
            name: self._homes.ring_size(name, pod_class.home, facts)
            for name, pod_class in self._settings().classes.items()
            if pod_class.home is not None
        }

    def _tell(self, body: bytes, now: float) -> _Told:
        try:
            oversized = uid_of_oversized(body)
            if oversized is not None:
                return _beyond(oversized, "", Bound.BODY)
            review = parse_review(body)
        except MalformedReviewError as error:
            return _Told(Answer(error.status, f"{error}\n".encode()), Result.MALFORMED)
        try:
            return self._decide(review, now)._replace(is_dry_run=review.is_dry_run)
        except Exception as error:  # noqa: BLE001 - the edge: a fault of ours must not stop a hub from starting pods
            _log_fault(f"pod admitted as it came: uid={review.uid!r}", error)
            return _Told(Answer(200, allow(review.uid, warnings=[_INTERNAL_WARNING])), Result.ERROR)

    def _decide(self, review: Review, now: float) -> _Told:
        if not review.creates_pod:
            return _Told(Answer(200, allow(review.uid)), Result.IGNORED)
        try:
            pod = read_pod(review.body, review.namespace)
            rulebook, facts = self._current_rulebook(), self._facts()
            pod_class = rulebook.classes.classify(pod.labels, review.namespace, facts.namespaces)
            if pod_class is None:
                return _Told(Answer(200, allow(review.uid)), Result.UNMATCHED)
            rules = rulebook.rules[pod_class.name]
            reason = pod.reason_to_skip()
            takes_requests = reason == DAEMON_SET and bool(rules.pod_class.resources)
            if reason and not takes_requests:
                return _skip(review, rules.name, reason)
            bound = exceeded(pod, 0 if facts.nodes is None else len(facts.nodes))
            if bound is not None:
                return _beyond(review.uid, rules.name, bound)
            case = Case(
                pod=pod,
                pod_key=pod_key(review.namespace, pod.name or unnamed(pod.generate_name, review.uid)),
                rules=rules,
                rulebook=rulebook,
                facts=facts,
                homes=self._homes,
                holders=self._holders,
                now=now,
            )
            if takes_requests:
                return self._give_requests(review, case)
            return self._place(review, case)
        except OddPodError as error:
            warning = f"Roost: pod admitted as it came: {error}"
            return _Told(Answer(200, allow(review.uid, warnings=[warning])), Result.ODD)

    def _current_rulebook(self) -> Rulebook:
        settings = self._settings()
        rulebook = self._rulebook
        if rulebook is None or rulebook.settings is not settings:
            rulebook = self._rulebook = Rulebook(settings)
        return rulebook

    def _give_requests(self, review: Review, case: Case) -> _Told:
        operations = patch_for(case.pod, requests_alone(case))
        if not operations:
            return _skip(review, case.rules.name, DAEMON_SET)
        audit = {"class": case.rules.name, "requests": DAEMON_SET}
        answer = Answer(200, allow(review.uid, operations, audit))
        return _Told(answer, Result.PATCHED, case.rules.name)

    def _place(self, review: Review, case: Case) -> _Told:
        changes: list[Change] = []
        pod_class = case.rules.name
        audit = {"class": pod_class, "policy-revision": case.rulebook.settings.revision}
        warnings: list[str] = []
        target = degraded = left_to_cluster = ""
        for verdict in verdicts_for(case):
            if isinstance(verdict, Note):
                audit[verdict.topic] = verdict.text
                if verdict.is_warning:
                    warnings.append(f"Roost: {verdict.topic}: {verdict.text}")
            elif isinstance(verdict, Degraded):
                degraded = verdict.reason
            elif isinstance(verdict, LeftToCluster):
                left_to_cluster = verdict.reason
            else:
                changes.append(verdict)
                if isinstance(verdict, Annotate) and verdict.key == HOME_TARGET_ANNOTATION:
                    target = verdict.value
        fitting, left_out = without_overflow(case.pod, changes)
        if left_out:
            warnings.append(f"Roost: the pod's annotations leave no room for {', '.join(left_out)}")
        operations = patch_for(case.pod, fitting)
        if len(operations) > MAX_OPERATIONS:
            return _beyond(review.uid, pod_class, Bound.OPERATIONS)
        answer = Answer(200, allow(review.uid, operations, audit, warnings))
        # What the facts show counts there: a repeated POST of a pod that is there will be refused.
        if target and not review.is_dry_run and case.pod_key not in case.facts.homes.pods:
            self._ledger.record(case.pod_key, HomePod(pod_class, target), case.now)
        result = Result.PATCHED if operations else Result.UNCHANGED
        return _Told(answer, result, pod_class, degraded=degraded, left_to_cluster=left_to_cluster)


def _skip(review: Review, pod_class: str, reason: str) -> _Told:
    audit = {"class": pod_class, "skipped": reason}
    return _Told(Answer(200, allow(review.uid, audit=audit)), Result.SKIPPED, pod_class, reason)


def _beyond(uid: str, pod_class: str, bound: Bound) -> _Told:
    warning = f"Roost: pod admitted as it came: more than {MOST[bound]}"
    answer = Answer(200, allow(uid, audit={"beyond-bounds": bound.value}, warnings=[warning]))
    return _Told(answer, Result.BEYOND_BOUNDS, pod_class or None, bound.value)


def _log_fault(what: str, error: Exception) -> None:
    """Log where a fault happened but not its text, which may quote a pod."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", what, type(error).__name__, frames)
