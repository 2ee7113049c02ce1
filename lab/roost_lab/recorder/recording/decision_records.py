"""Make records of schedulers' decisions and failed attempts. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha256
from typing import Final

from roost_core.scheduler.cycle import as_note
from roost_lab.recorder.recording.reading import Step
from roost_lab.recorder.store.records import (
    MAX_ID,
    MAX_SCHEDULER,
    CandidatesRecord,
    DecisionKind,
    DecisionRecord,
)

# A binding with the verdict of the scheduler's model, and the nodes as they stood.
Judged = tuple[DecisionRecord, CandidatesRecord | None]
_AVAILABLE: Final = re.compile(r"0/(\d+) nodes are available")
_REASON: Final = re.compile(r"(\d+) (.+)")


def decision(
    kind: DecisionKind,
    pod_uid: str,
    node_name: str,
    when: Step,
    *,
    source: str,
    node_uid: str = "",
    scheduler: str = "",
    last_us: int | None = None,
    detail: str = "",
) -> DecisionRecord:
    """A decision for a node.

    detail: what tells it from others of its kind about this pod; "": there is no other.
    """
    identity = f"{pod_uid}/{kind}/{detail}" if detail else f"{pod_uid}/{kind}"
    return DecisionRecord(
        id=identity[:MAX_ID],
        pod_uid=pod_uid,
        kind=kind,
        node_name=node_name,
        node_uid=node_uid,
        **when._asdict(),
        last_us=when.at_us if last_us is None else last_us,
        scheduler=scheduler[:MAX_SCHEDULER],
        source=source,
    )


def failed_attempt(
    uid: str,
    scheduler: str,
    message: str,
    when: Step,
    *,
    source: str,
    last_us: int | None = None,
    tries: int = 1,
) -> DecisionRecord:
    """A decision of kind fail, from the scheduler's message in the pod's condition or in an
    Event.
    """
    total, reasons = read_reasons(message)
    # The same message in the pod's condition and in the Event is one failure.
    digest = sha256(as_note(message)).hexdigest()[:16]
    attempt = decision(
        DecisionKind.FAIL,
        uid,
        "",
        when,
        source=source,
        scheduler=scheduler,
        last_us=last_us,
        detail=digest,
    )
    return replace(
        attempt,
        tries=tries,
        nodes_total=total,
        nodes_feasible=0 if total is not None else None,
        reasons=json.dumps(reasons, sort_keys=True),
        message=message,
    )


def read_reasons(message: str) -> tuple[int | None, dict[str, int]]:
    """The total number of nodes, and how many were rejected for each reason, from a
    FailedScheduling message.
    """
    available = _AVAILABLE.search(message)
    total = int(available[1]) if available else None
    reasons: dict[str, int] = {}
    # 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had disk pressure. preemption: …
    listed = message.partition(": ")[2].partition(". ")[0].removesuffix(".")
    for part in listed.split(", "):
        match = _REASON.fullmatch(part)
        if match:
            reasons[match[2]] = reasons.get(match[2], 0) + int(match[1])
    return total, reasons
