"""What the model says of bindings, and when it can't be trusted to say anything."""

import json

import pytest

from lab.tests.moments import BEGIN, SECOND
from lab.tests.objects import node_object, node_reading, pod_object, pod_reading
from lab.tests.recorded import bind_record
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.decision_records import Judged
from roost_lab.recorder.recording.model import UNSEEN_US, Model
from roost_lab.recorder.recording.reading import PodReading
from roost_lab.recorder.store.records import (
    NODES,
    PODS,
    CandidatesRecord,
    DecisionRecord,
    StoredState,
    Verdict,
    unpack_candidates,
)

MS = 1_000


def pod(name: str, on: str = "", cpu: int = 1) -> PodReading:
    return pod_reading(pod_object(name, on=on, cpu=str(cpu)))


class Story:
    """A model that is told of pods and nodes, a millisecond after the other."""

    def __init__(self, **nodes: int) -> None:
        self.model = Model({"default-scheduler": default_profile(NEWEST_MINOR)})
        self.now_us = BEGIN
        for name, cpu in nodes.items():
            self.node(name, cpu)

    def node(self, name: str, cpu: int = 4, *, cordoned: bool = False) -> None:
        self.now_us += MS
        item = node_object(name, cpu=str(cpu), unschedulable=cordoned)
        self.model.node_changed(name, node_reading(item), self.now_us)

    def pod(self, name: str, on: str = "", cpu: int = 1) -> None:
        self.now_us += MS
        self.model.pod_changed(f"hub/{name}", pod(name, on, cpu), "user", self.now_us)

    def gone(self, name: str) -> None:
        self.now_us += MS
        self.model.pod_changed(f"hub/{name}", None, "", self.now_us)

    def rest(self) -> None:
        """Long enough for the scheduler to have seen all that was told."""
        self.now_us += UNSEEN_US

    def bound(self, name: str, on: str) -> Judged:
        """It is told that the pod in question was bound."""
        self.now_us += MS
        return self.model.judge(bind_record(f"uid-{name}", self.now_us, on), pod(name, on), self.now_us)

    def verdict(self, name: str, on: str) -> str | None:
        return self.bound(name, on)[0].model


def test_a_binding_to_the_node_that_the_model_takes_agrees_whatever_has_just_changed() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "a")
    assert story.verdict("p", "b") == Verdict.AGREES


def test_a_binding_to_another_node_differs_and_is_told_as_it_stood() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "b", cpu=2)
    story.rest()
    judged, candidates = story.bound("p", "b")
    assert (judged.model, judged.model_note) == (Verdict.DIFFERS, "the model prefers a")
    assert candidates is not None
    stood = unpack_candidates(candidates.nodes)
    assert {row["node_name"]: row["free_cpu_millicores"] for row in stood} == {"a": 4000, "b": 2000}


@pytest.mark.parametrize("change", ["pod bound", "pod gone", "node cordoned"])
def test_a_binding_that_differs_just_after_a_change_is_unknown(change: str) -> None:
    story = Story(a=4, b=4)
    story.pod("there", "a", cpu=1)
    story.pod("more", "b", cpu=2)
    story.rest()
    if change == "pod bound":
        story.pod("new", "b")
    elif change == "pod gone":
        story.gone("there")
    else:
        story.node("b", cordoned=True)
    judged, _ = story.bound("p", "b")
    assert judged.model == Verdict.UNKNOWN
    assert (judged.model_note or "").endswith(", but pods or nodes had just changed")
    story.rest()
    assert story.verdict("p", "b") == Verdict.DIFFERS


@pytest.mark.parametrize("by_claim", [True, False])
def test_the_model_does_not_judge_by_devices_that_a_pod_claims(*, by_claim: bool) -> None:
    story = Story(a=4, b=4)
    story.pod("there", "b", cpu=2)
    story.rest()
    item = pod_object("p", on="b", cpu="1")
    if by_claim:
        item["spec"]["resourceClaims"] = [{"name": "gpu"}]
    else:
        item["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"

    def judge() -> tuple[str | None, str]:
        at_us = story.now_us + MS
        judged, _ = story.model.judge(bind_record("uid-p", at_us, "b"), pod_reading(item), at_us)
        return judged.model, judged.model_note or ""

    if not by_claim:
        assert judge() == (Verdict.DIFFERS, "the model rejects b: Insufficient example.com/gpu")
    story.model.surroundings_changed({}, frozenset({"example.com/gpu"}))
    assert judge() == (Verdict.UNKNOWN, "the model prefers a, but it claims devices, which the model leaves out")
    item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    waiting = story.model.examine(pod_reading(item), story.now_us)
    assert waiting is not None
    assert [[lack["resource"] for lack in lacks] for lacks in json.loads(waiting.nodes)["lacks"]] == [["cpu"], ["cpu"]]


# 1.33 names the taint in its reason.
@pytest.mark.parametrize("minor", [OLDEST_MINOR, NEWEST_MINOR])
def test_a_taint_is_told_once_whatever_the_minor_says_of_it(minor: int) -> None:
    model = Model({"default-scheduler": default_profile(minor)})
    item = node_object("a", cpu="4", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    model.node_changed("a", node_reading(item), BEGIN)
    waiting = model.examine(pod("p"), BEGIN)
    assert waiting is not None
    assert json.loads(waiting.nodes)["lacks"] == [[{"kind": "taint", "taint": "gpu=yes:NoSchedule"}]]


def test_what_no_scheduler_cares_about_is_no_change() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "b", cpu=2)
    story.rest()
    story.pod("there", "b", cpu=2)
    story.pod("p")
    story.node("a")
    assert story.verdict("p", "b") == Verdict.DIFFERS


def test_a_scheduler_that_looks_at_some_nodes_only_is_not_said_to_differ() -> None:
    story = Story(**{f"n{number}": 4 for number in range(150)})
    story.pod("there", "n7")
    story.rest()
    assert story.verdict("p", "n7") == Verdict.UNKNOWN


def test_more_than_64_bits_count_on_a_node_is_told_as_the_most_that_they_do() -> None:
    story = Story(a=4, b=4)
    story.pod("huge", "a", cpu=9 * 10**18)
    _, candidates = story.bound("p", "b")
    assert candidates is not None
    free = {one["node_name"]: one["free_cpu_millicores"] for one in unpack_candidates(candidates.nodes)}
    assert free == {"a": 1 - 2**63, "b": 4000}


def test_a_binding_is_stored_with_its_verdict_and_the_nodes_as_they_stood() -> None:
    assembler = Assembler(lambda _labels, _namespace: "user", StoredState(), Story(a=4, b=4).model)
    for kind in (PODS, NODES):
        assembler.listing(kind)
        assembler.synced(kind, 1)
    for name in ("a", "b"):
        assembler.node(name, node_reading(node_object(name)), BEGIN)
    assembler.pod("hub/there", pod("there", "b", 2), BEGIN)
    assembler.pod("hub/p", pod("p"), BEGIN)
    told = assembler.pod("hub/p", pod("p", "b"), BEGIN + SECOND)
    (decision,) = [record for record in told if isinstance(record, DecisionRecord)]
    assert (decision.node_name, decision.model, decision.model_node) == ("b", "differs", "a")
    assert (decision.model_note, decision.nodes_total, decision.nodes_feasible) == ("the model prefers a", 2, 2)
    (candidates,) = [record for record in told if isinstance(record, CandidatesRecord)]
    assert candidates.number == 2
