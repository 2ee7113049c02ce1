"""Let the scheduler's model follow the cluster's changes, and add its verdicts to their records.

When the model fails, its verdict is missing, but every record is kept.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from roost_lab.recorder.recording.changes import Change, ListEnd, NodeChange, PodChange
from roost_lab.recorder.recording.reading import PodReading
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.store.records import (
    NODES,
    PODS,
    DecisionKind,
    DecisionRecord,
    Record,
    Verdict,
)

log = logging.getLogger(__name__)


class Judging:
    """Reads each change once, in order. Owned by one thread."""

    def __init__(self, model: Model | None, on_failure: Callable[[], None] = lambda: None) -> None:
        """Begin with a model that knows no pods and nodes.

        model: None: bindings are recorded without a verdict. on_failure: called when it fails.
        """
        self._model = model
        self._on_failure = on_failure
        # Kinds that have been listed completely.
        self._listed: set[str] = set()
        # Pods for which no node is found, by key.
        self._waiting: dict[str, PodReading] = {}

    def follow(self, change: Change) -> list[Record]:
        """Show a change to the model, and return the change's records with what the model adds.

        Of a binding it adds a verdict, and of a pod that fits on no node what each node lacks.
        """
        match change:
            case PodChange():
                judged = [self._judged(record, change) for record in change.records]
                # The model must judge first: it finds where the pod would go, were it not bound.
                self._update_pod(change)
                return list(chain.from_iterable(judged))
            case NodeChange() if self._model is not None:
                with self._count_failures():
                    self._model.node_changed(change.name, change.node, change.at_us)
            case ListEnd(kind=kind) if kind in (PODS, NODES):
                self._listed.add(kind)
                # Pods that were waiting when recording began, or during a gap.
                waiting = [self._examined(pod, change.at_us) for pod in self._waiting.values()]
                return [*change.records, *chain.from_iterable(waiting)]
        return change.records

    def _update_pod(self, change: PodChange) -> None:
        if self._model is None:
            return
        self._waiting.pop(change.key, None)
        if change.pod.is_unschedulable and not change.is_gone:
            self._waiting[change.key] = change.pod
        now_us = change.observed.at_us
        with self._count_failures():
            if change.is_gone:
                self._model.pod_changed(change.key, None, "", now_us)
            else:
                self._model.pod_changed(change.key, change.pod, change.pod_class, now_us)

    def _judged(self, record: Record, change: PodChange) -> list[Record]:
        """A record of a pod, with what the model adds to it."""
        match record:
            case DecisionRecord(kind=DecisionKind.BIND):
                return self._with_verdict(record, change)
            case DecisionRecord(kind=DecisionKind.FAIL) if change.observed.is_watched:
                return [record, *self._examined(change.pod, change.observed.at_us)]
        return [record]

    def _with_verdict(self, binding: DecisionRecord, change: PodChange) -> list[Record]:
        """A binding with the model's verdict, and the nodes as they were then.

        Where the model can't judge, the binding says why, and there are no nodes.
        """
        if not change.observed.is_watched:
            note = "bound before it was watched"
        elif self._model is None or not self._knows_all:
            note = "bound before all pods and nodes were known"
        else:
            with self._count_failures():
                judged, candidates = self._model.judge(binding, change.pod, change.observed.at_us)
                return [judged] if candidates is None else [judged, candidates]
            # Only a failure comes here.
            note = "the model failed, see the recorder's log"
        return [replace(binding, model=Verdict.UNKNOWN, model_note=note)]

    def _examined(self, pod: PodReading, at_us: int) -> list[Record]:
        """What each node lacks for a pod that fits on none; [] before all pods and nodes are
        known.
        """
        if self._model is not None and self._knows_all:
            with self._count_failures():
                waiting = self._model.examine(pod, at_us)
                return [] if waiting is None else [waiting]
        return []

    @property
    def _knows_all(self) -> bool:
        return {PODS, NODES} <= self._listed

    @contextlib.contextmanager
    def _count_failures(self) -> Iterator[None]:
        """Log and count an exception of the model, and go on behind the block."""
        try:
            yield
        except Exception:  # whatever makes the model fail, the pod's rows must be stored
            log.exception("the model failed")
            self._on_failure()
