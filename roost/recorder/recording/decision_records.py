"""Make records of what schedulers decided, and of what the model says of it. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from roost.recorder.store.records import (
    MAX_SCHEDULER,
    CandidatesRecord,
    DecisionKind,
    DecisionRecord,
    Verdict,
)

if TYPE_CHECKING:
    from roost.recorder.recording.reading import Step

_AVAILABLE: Final = re.compile(r"0/(\d+) nodes are available")
_REASON: Final = re.compile(r"(\d+) (.+)")
# Bytes of an Event's note; kube-scheduler cuts what is longer, and ends it so.
_MAX_NOTE: Final = 1024
_CUT: Final = b" ..."


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the scheduler's model says of one decision."""

    model: Verdict
    model_node: str = ""
    note: str = ""
    nodes_total: int | None = None
    nodes_feasible: int | None = None
    # The nodes as they stood.
    candidates: CandidatesRecord | None = None


def judged(told: DecisionRecord, judgement: Judgement) -> DecisionRecord:
    """The decision with what the model says of it."""
    return replace(
        told,
        nodes_total=judgement.nodes_total,
        nodes_feasible=judgement.nodes_feasible,
        model=judgement.model,
        model_node=judgement.model_node,
        model_note=judgement.note,
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
    """A decision of kind fail, from what the scheduler says of it in the pod's condition or in an Event."""
    total, reasons = read_reasons(message)
    # The same words from the pod's condition and from the Event are one failure.
    digest = sha256(_as_note(message)).hexdigest()[:16]
    return DecisionRecord(
        id=f"{uid}/fail/{digest}",
        pod_uid=uid,
        kind=DecisionKind.FAIL,
        node_name="",
        node_uid="",
        at_us=when.at_us,
        resolution_us=when.resolution_us,
        last_us=last_us or when.at_us,
        tries=tries,
        scheduler=scheduler[:MAX_SCHEDULER],
        source=source,
        nodes_total=total,
        nodes_feasible=0 if total is not None else None,
        reasons=json.dumps(reasons, sort_keys=True),
        message=message,
    )


def read_reasons(message: str) -> tuple[int | None, dict[str, int]]:
    """Nodes in all, and how many each reason refused, of a FailedScheduling message."""
    available = _AVAILABLE.search(message)
    total = int(available[1]) if available else None
    reasons: dict[str, int] = {}
    listed = message.partition(": ")[2].partition(". ")[0].removesuffix(".")
    for part in listed.split(", "):
        match = _REASON.fullmatch(part)
        if match:
            reasons[match[2]] = reasons.get(match[2], 0) + int(match[1])
    return total, reasons


def _as_note(message: str) -> bytes:
    """A message as an Event has it: the pod's condition has all of it."""
    whole = message.encode()
    return whole if len(whole) <= _MAX_NOTE else whole[: _MAX_NOTE - len(_CUT)] + _CUT
