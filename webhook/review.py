"""Answer AdmissionReview v1 requests: read the review, decide on its pod, write the answer.

It never raises an exception, and never answers with a status of 5xx. After an error in Roost, the
pod is admitted unchanged, and the error is counted. No content of a pod is logged: env, args and
image pull settings can hold tokens. Source: k8s.io/api/admission/v1.
"""

from __future__ import annotations

import logging
import re
import traceback
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import orjson

from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.pod_body import read_pod_body
from roost_core.release.release_settings import ReleaseSettings
from webhook.admission import Decision, ReviewResult, decide
from webhook.bounds import (
    MAX_ANSWER_BYTES,
    MAX_BODY_BYTES,
    MAX_JSON_PARTS,
    MAX_JSON_TEXTS,
    MOST,
    Bound,
)
from webhook.facts.facts import Facts
from webhook.rules import Rulebook
from webhook.rules.home import ring_of

log = logging.getLogger(__name__)

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
# A UUID has 36 characters. The answer repeats the uid, so its length is bounded.
_MAX_UID: Final = 128
# How kube-apiserver begins a review. It has the uid, which the answer to a review needs that is too
# large to be parsed.
_HEAD: Final = re.compile(
    rb'\s{0,8}\{"kind":"AdmissionReview","apiVersion":"admission\.k8s\.io/v1","request":\{"uid":"([0-9A-Za-z-]{1,128})"'
)
# The API server cuts a warning after 256 characters. It drops further warnings after 4096
# characters in total.
_MAX_WARNING: Final = 256
_INTERNAL_WARNING: Final = "Roost: placement rules skipped: internal error, see the webhook's log"


class MalformedReviewError(Exception):
    """The body is not an AdmissionReview v1 request.

    The text says why, and quotes nothing of the body. status: of the HTTP answer, 4xx.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Review(NamedTuple):
    """What is read of an AdmissionReview's request."""

    uid: str
    namespace: str
    # Whether a pod itself is created, not a subresource or another kind.
    creates_pod: bool
    is_dry_run: bool
    # The object as sent: any JSON.
    body: object


def _is_oversized(body: bytes) -> bool:
    """Whether a request is too large to be parsed."""
    # Each part has at least a byte, so a short body needn't be searched.
    if len(body) <= MAX_JSON_PARTS:
        return False
    if len(body) > MAX_BODY_BYTES:
        return True
    if body.count(b"{") + body.count(b"[") > MAX_JSON_PARTS:
        return True
    return body.count(b'"') > 2 * MAX_JSON_TEXTS


def _answer_oversized(body: bytes) -> tuple[Answer, Decision]:
    """Admit the pod of a review that is too large to be parsed.

    Raises MalformedReviewError if the review doesn't begin like kube-apiserver's reviews. After a
    4xx, the API server applies the webhook's failurePolicy, which is Ignore by default.
    """
    head = _HEAD.match(body)
    if head is None:
        raise MalformedReviewError(f"more than {MOST[Bound.BODY]}", 413)
    uid = head[1].decode("ascii")
    decision = Decision(ReviewResult.BEYOND_BOUNDS, reason=Bound.BODY)
    return _allow(uid, decision), decision


def parse_review(body: bytes) -> Review:
    """Parse a request that isn't oversized.

    Raises MalformedReviewError, and nothing else, whatever `body` is.
    """
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError:
        # The parser's own message could quote the body.
        raise MalformedReviewError("the body is not valid JSON, or is nested too deeply") from None
    if type(review) is not dict:
        raise MalformedReviewError("the body is not a JSON object")
    if review.get("kind") != KIND or review.get("apiVersion") != API_VERSION:
        raise MalformedReviewError(f"not an {KIND} of {API_VERSION}")
    request = review.get("request")
    if type(request) is not dict:
        raise MalformedReviewError("the review has no request")
    uid = request.get("uid")
    if type(uid) is not str or not 0 < len(uid) <= _MAX_UID:
        raise MalformedReviewError("the review's request has no uid")
    namespace = request.get("namespace")
    return Review(
        uid=uid,
        namespace=namespace if type(namespace) is str else "",
        creates_pod=request.get("operation") == "CREATE" and _is_pod(request),
        is_dry_run=request.get("dryRun") is True,
        body=request.get("object"),
    )


def _is_pod(request: Mapping[str, object]) -> bool:
    resource = request.get("resource")
    if type(resource) is not dict or resource.get("group") or request.get("subResource"):
        return False
    return resource.get("resource") == "pods" and resource.get("version") == "v1"


def _allow(uid: str, decision: Decision) -> Answer:
    """Write the answer that admits the pod, with a JSON Patch if there are operations."""
    response: dict[str, object] = {"uid": uid, "allowed": True}
    audit = decision.audit
    warnings = decision.warnings
    if decision.result is ReviewResult.BEYOND_BOUNDS:
        audit = {"beyond-bounds": decision.reason}
        warnings = [f"Roost: pod admitted unchanged: more than {MOST[Bound(decision.reason)]}"]
    if decision.operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(orjson.dumps(decision.operations)).decode("ascii")
    if audit:
        response["auditAnnotations"] = audit
    if warnings:
        response["warnings"] = [warning[:_MAX_WARNING] for warning in warnings]
    return Answer(
        200, orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    )


class Answer(NamedTuple):
    """An HTTP response: status 200 with an AdmissionReview in JSON, or 4xx with a line of text."""

    status: int
    body: bytes


class Reviewer:
    """Answers reviews. The HTTP server's loop calls it; several threads may call it, too."""

    def __init__(
        self,
        settings: Callable[[], ReleaseSettings],
        facts: Callable[[], Facts],
        now: Callable[[], float],
        on_decision: Callable[[Decision, bool, float], None],
    ) -> None:
        """settings, facts: called for each review. now: seconds of a monotonic clock.

        on_decision: called after each review, with the decision, whether it was a dry run, and how
        many seconds it took.
        """
        self._settings = settings
        self._facts = facts
        self._rulebook: Rulebook | None = None
        self._now = now
        self._on_decision = on_decision

    def review(self, body: bytes) -> Answer:
        """Answer a request. body: of the HTTP request. Raises nothing."""
        started = self._now()
        is_dry_run = False
        try:
            if _is_oversized(body):
                answer, decision = _answer_oversized(body)
            else:
                review = parse_review(body)
                is_dry_run = review.is_dry_run
                answer, decision = self._answer(review, started)
        except MalformedReviewError as error:
            answer = Answer(error.status, f"{error}\n".encode())
            decision = Decision(ReviewResult.MALFORMED)
        try:
            self._on_decision(decision, is_dry_run, self._now() - started)
        except Exception as error:  # noqa: BLE001 - an error in counting must not fail the review
            _log_fault("review not counted", error)
        return answer

    def ring_sizes(self) -> dict[str, int]:
        """How many nodes are in the ring of each class with a home, by class."""
        facts = self._facts()
        return {
            name: len(ring_of(pod_class, pod_class.home, facts).nodes)
            for name, pod_class in self._settings().classes.items()
            if pod_class.home is not None
        }

    def _answer(self, review: Review, now: float) -> tuple[Answer, Decision]:
        try:
            decision = self._decide(review, now)
            answer = _allow(review.uid, decision)
            if len(answer.body) > MAX_ANSWER_BYTES:
                decision = Decision(ReviewResult.BEYOND_BOUNDS, decision.pod_class, Bound.ANSWER)
                answer = _allow(review.uid, decision)
        except Exception as error:  # noqa: BLE001 - an error in Roost must not stop a hub from starting pods
            _log_fault(f"pod admitted unchanged: uid={review.uid!r}", error)
            decision = Decision(ReviewResult.ERROR, warnings=[_INTERNAL_WARNING])
            answer = _allow(review.uid, decision)
        return answer, decision

    def _decide(self, review: Review, now: float) -> Decision:
        if not review.creates_pod:
            return Decision(ReviewResult.IGNORED)
        try:
            pod = read_pod_body(review.body, review.namespace)
            return decide(pod, self._current_rulebook(), self._facts(), now=now)
        except MalformedObjectError as error:
            return Decision(ReviewResult.ODD, warnings=[f"Roost: pod admitted unchanged: {error}"])

    def _current_rulebook(self) -> Rulebook:
        """The rules of the present settings. They are kept until the settings change."""
        settings = self._settings()
        rulebook = self._rulebook
        if rulebook is None or rulebook.settings is not settings:
            rulebook = Rulebook(settings)
            self._rulebook = rulebook
        return rulebook


def _log_fault(consequence: str, error: Exception) -> None:
    """Log where an error happened, but not its message, which may quote a pod."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", consequence, type(error).__name__, frames)
