"""Read AdmissionReview v1 requests and write their answers; knows nothing of what is decided.

Source: k8s.io/api/admission/v1.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from webhook.rules.bounds import MOST, Bound, is_oversized

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
# A UUID has 36; the answer repeats what was sent, so it is bounded.
_MAX_UID: Final = 128
# How kube-apiserver begins a review. What is too long to be parsed is answered by this alone.
_HEAD: Final = re.compile(
    rb'\s{0,8}\{"kind":"AdmissionReview","apiVersion":"admission\.k8s\.io/v1","request":\{"uid":"([0-9A-Za-z-]{1,128})"'
)
# Beyond 256 characters the API server cuts, and beyond 4096 in all it drops.
_MAX_WARNING: Final = 256


class MalformedReviewError(Exception):
    """The body is no AdmissionReview v1 request. The text says why, and holds nothing of the body."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        # HTTP status, 4xx.
        self.status = status


class Review(NamedTuple):
    """One request."""

    uid: str
    namespace: str
    # The creation of a pod itself, not of a subresource or anything else.
    creates_pod: bool
    is_dry_run: bool
    # Whatever was sent as the object.
    body: object


def uid_of_oversized(body: bytes) -> str | None:
    """The uid of a review that is too much to be parsed, read from its first bytes; None for any other body.

    Raises MalformedReviewError when it doesn't begin as kube-apiserver begins a review: to a 4xx the API server applies
    the entry's failurePolicy, which is Ignore by default.
    """
    if not is_oversized(body):
        return None
    head = _HEAD.match(body)
    if head is None:
        raise MalformedReviewError(f"more than {MOST[Bound.BODY]}", 413)
    return head[1].decode("ascii")


def parse_review(body: bytes) -> Review:
    """Read a request that isn't oversized. Raises MalformedReviewError, and nothing else, whatever `body` is."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError:
        # The parser's own text could quote the body.
        raise MalformedReviewError("the body is no JSON, or nested too deeply") from None
    if type(review) is not dict:
        raise MalformedReviewError("the body is no JSON object")
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
    return (
        type(resource) is dict
        and resource.get("resource") == "pods"
        and not resource.get("group")
        and resource.get("version") == "v1"
        and not request.get("subResource")
    )


def allow(
    uid: str,
    operations: Sequence[Mapping[str, object]] = (),
    audit: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> bytes:
    """Write the answer `allowed`, with a JSON Patch when there are operations."""
    response: dict[str, object] = {"uid": uid, "allowed": True}
    if operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(orjson.dumps(operations)).decode("ascii")
    if audit:
        response["auditAnnotations"] = audit
    if warnings:
        response["warnings"] = [warning[:_MAX_WARNING] for warning in warnings]
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})
