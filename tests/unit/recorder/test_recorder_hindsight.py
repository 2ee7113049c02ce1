"""Bindings that the model agrees with on an earlier state only, and what that leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.recorder.recording import model as module
from roost.recorder.recording.assembler import NODES, PODS, Assembler, Judgement
from roost.recorder.recording.model import Model
from roost.recorder.recording.reading import read_node, read_pod
from roost.recorder.store.records import CandidatesRecord, DecisionRecord, Known, Verdict, unpack_candidates
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile

if TYPE_CHECKING:
    from roost.recorder.recording.reading import SeenNode, SeenPod

Object = dict[str, Any]
MS = 1_000
SECOND = 1_000_000
BEGIN = 1_800_000_000 * SECOND


def node(name: str, version: int, cpu: int = 4, *, cordoned: bool = False, images: int = 0) -> SeenNode:
    item = {
        "metadata": {"name": name, "uid": name, "resourceVersion": str(version)},
        "spec": {"unschedulable": cordoned},
        "status": {
            "allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": [f"i:{number}"], "sizeBytes": 10**9} for number in range(images)],
        },
    }
    seen = read_node(item)
    assert seen is not None
    return seen


def pod(name: str, version: int, on: str = "", cpu: int = 1, scheduler: str = "default-scheduler") -> SeenPod:
    containers = [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": str(cpu), "memory": f"{cpu}Gi"}}}]
    item = {
        "metadata": {"name": name, "namespace": "hub", "uid": f"uid-{name}", "resourceVersion": str(version)},
        "spec": {"containers": containers, "schedulerName": scheduler, **({"nodeName": on} if on else {})},
        "status": {},
    }
    seen = read_pod(item, (), {})
    assert seen is not None
    return seen


class Story:
    """A model that is told of pods and nodes, a millisecond after the other."""

    def __init__(self, **nodes: int) -> None:
        profile = default_profile(NEWEST_MINOR)
        self.model = Model(dict.fromkeys(("default-scheduler", "mine", "mine-too"), profile))
        self.version = 1
        self.last: dict[str, SeenPod] = {}
        for name, cpu in nodes.items():
            self.node(name, cpu)
        # Long before all that follows.
        self.version += 2_000
        self.judged: Judgement | None = None

    @property
    def now_us(self) -> int:
        return BEGIN + self.version * MS

    def node(self, name: str, cpu: int = 4, *, cordoned: bool = False) -> None:
        self.version += 1
        self.model.node_changed(name, node(name, self.version, cpu, cordoned=cordoned), self.now_us)

    def pod(self, name: str, on: str = "", cpu: int = 1, scheduler: str = "default-scheduler") -> None:
        self.version += 1
        seen = self.last[name] = pod(name, self.version, on, cpu, scheduler)
        self.model.pod_changed(f"hub/{name}", seen, "user", self.now_us)

    def gone(self, name: str) -> None:
        self.version += 1
        last = self.last.get(name)
        if last is not None:
            # The watch tells the end with the object as it was, and a version of its own.
            ended = replace(last, resource_version=str(self.version))
            self.model.pod_changed(f"hub/{name}", ended, "user", self.now_us)
        self.model.pod_changed(f"hub/{name}", None, "", self.now_us)

    def bound(self, name: str, on: str, scheduler: str = "default-scheduler") -> None:
        """It is told that the pod in question was bound."""
        self.version += 1
        seen = pod(name, self.version, on, scheduler=scheduler)
        self.judged = self.model.judge(f"uid-{name}/bind", seen, on, self.now_us)
        self.model.pod_changed(f"hub/{name}", seen, "user", self.now_us)

    def verdict(self) -> Judgement:
        if self.judged is not None:
            return self.judged
        ((_, judged),) = self.model.settle(self.now_us + SECOND + 1)
        return judged


def test_what_agrees_as_it_was_told_is_said_at_once() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "a")
    story.bound("p", "b")
    assert story.judged is not None
    assert (story.verdict().model, story.verdict().back_us) == (Verdict.AGREES, 0)


def test_a_pod_whose_end_the_scheduler_had_not_heard_of_is_counted() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "a", cpu=3)
    story.pod("p")
    story.gone("there")
    story.pod("b-is-less", "b")
    story.bound("p", "b")
    verdict = story.verdict()
    assert (verdict.model, verdict.back_us) == (Verdict.AGREES_EARLIER, 2 * MS)
    assert verdict.note == "as it stood before the last 1 change, 2 ms earlier"
    assert verdict.candidates is not None
    by_name = {one["node_name"]: one for one in unpack_candidates(verdict.candidates.nodes)}
    assert by_name["a"]["free_cpu_millicores"] == 1000
    assert by_name["a"]["users"] == 1


def test_what_was_told_before_the_pod_itself_had_been_seen_by_whoever_bound_it() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "a", cpu=3)
    story.gone("there")
    story.pod("b-is-less", "b")
    story.pod("p")
    story.bound("p", "b")
    assert story.verdict().model == Verdict.DIFFERS


def test_a_cordon_that_came_after_the_decision_is_taken_back() -> None:
    story = Story(a=4, b=2)
    story.pod("p")
    story.node("a", cordoned=True)
    story.bound("p", "a")
    assert story.judged is None
    assert story.verdict().model == Verdict.AGREES_EARLIER


def test_a_decision_made_before_and_told_later_counts() -> None:
    story = Story(a=4, b=3)
    story.pod("p")
    story.bound("p", "b")
    assert story.judged is None
    story.pod("q", "a", cpu=3)
    verdict = story.verdict()
    assert verdict.model == Verdict.AGREES_EARLIER
    assert verdict.note == "as it stood 1 decision told later counted"


def test_a_decision_made_later_and_told_before_is_left_out() -> None:
    story = Story(a=4, b=3)
    story.pod("p")
    story.pod("q", "a", cpu=3)
    story.bound("p", "a")
    verdict = story.verdict()
    assert verdict.note == "as it stood 1 decision told earlier left out"


@pytest.mark.parametrize(("other", "word"), [("mine-too", Verdict.AGREES_EARLIER), ("default-scheduler", "differs")])
def test_only_profiles_of_one_process_know_each_others_decisions_before_they_are_told(other: str, word: str) -> None:
    story = Story(a=4, b=3)
    story.pod("p", scheduler="mine")
    story.bound("p", "b", scheduler="mine")
    story.pod("q", "a", cpu=3, scheduler=other)
    assert story.verdict().model == word


def test_what_differs_in_every_state_differs_and_is_told_as_it_stood() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "b", cpu=2)
    story.pod("p")
    story.bound("p", "b")
    story.pod("later", "b", cpu=2)
    verdict = story.verdict()
    assert (verdict.model, verdict.note, verdict.back_us) == (Verdict.DIFFERS, "the model prefers a", None)
    assert verdict.candidates is not None
    stood = unpack_candidates(verdict.candidates.nodes)
    assert {one["node_name"]: one["free_cpu_millicores"] for one in stood} == {"a": 4000, "b": 2000}


def test_a_long_ago_change_is_not_taken_back() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "a", cpu=3)
    story.pod("b-is-less", "b")
    story.pod("p")
    story.gone("there")
    story.version += 2_000
    story.bound("p", "b")
    assert story.verdict().model == Verdict.DIFFERS


def test_nothing_is_gone_back_to_from_behind_a_list() -> None:
    story = Story(a=4, b=4)
    story.pod("there", "a", cpu=3)
    story.pod("p")
    story.gone("there")
    story.pod("b-is-less", "b")
    story.bound("p", "b")
    story.model.relisted(story.now_us)
    assert story.verdict().model == Verdict.DIFFERS


def test_when_too_many_differ_at_once_the_verdict_says_that_no_earlier_state_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HINDSIGHT_NODES_A_SECOND", 0)
    story = Story(a=4, b=2)
    story.pod("p")
    story.node("a", cordoned=True)
    story.bound("p", "a")
    verdict = story.verdict()
    assert verdict.model == Verdict.DIFFERS
    assert "too many at once" in verdict.note


def test_a_scheduler_that_looks_at_some_nodes_only_is_not_said_to_differ() -> None:
    story = Story(**{f"n{number}": 4 for number in range(150)})
    story.pod("there", "n7")
    story.bound("p", "n7")
    assert story.verdict().model == Verdict.UNKNOWN


def test_more_than_64_bits_count_on_a_node_is_told_as_the_most_that_they_do() -> None:
    story = Story(a=4, b=4)
    story.pod("huge", "a", cpu=9 * 10**18)
    story.bound("p", "b")
    candidates = story.verdict().candidates
    assert candidates is not None
    free = {one["node_name"]: one["free_cpu_millicores"] for one in unpack_candidates(candidates.nodes)}
    assert free == {"a": 1 - 2**63, "b": 4000}


names = st.sampled_from(["p", "q", "r", "s"])
places = st.sampled_from(["", "a", "b", "c"])
changes = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), names, places, st.integers(1, 3)),
        st.tuples(st.just("gone"), names, st.just(""), st.just(0)),
        st.tuples(st.just("node"), st.sampled_from(["a", "b", "c"]), st.just(""), st.integers(1, 6)),
        st.tuples(st.just("lost"), st.sampled_from(["a", "b", "c"]), st.just(""), st.just(0)),
    ),
    max_size=25,
)


def picture(model: Model) -> object:
    """All that the model knows."""
    state = model._state
    rows = {
        name: (
            row.node,
            *(sorted(found.items()) for found in (row.requested, row.scored, row.pods, row.nominated)),
            row.image_view,
        )
        for name, row in sorted(state.rows.items())
    }
    unseen = sorted(state._unseen & state.rows.keys())
    return repr((rows, unseen, sorted(model._by_class.items()), sorted(model._classes.items())))


@given(changes, st.sampled_from(["a", "b", "c"]), changes, st.integers(0, 30))
def test_looking_back_leaves_the_model_as_it_was(
    before: list[tuple[str, str, str, int]], chosen: str, after: list[tuple[str, str, str, int]], asked: int
) -> None:
    story = Story(a=4, b=4, c=4)

    def tell(told: list[tuple[str, str, str, int]]) -> None:
        for kind, name, place, number in told:
            if kind == "pod":
                story.pod(name, place, number)
            elif kind == "gone":
                story.gone(name)
            elif kind == "node":
                story.version += 1
                story.model.node_changed(name, node(name, story.version, number, images=number), story.now_us)
            else:
                story.version += 1
                story.model.node_changed(name, None, story.now_us)

    tell(before)
    story.bound("x", chosen)
    version, at_us = story.version, story.now_us
    tell(after)
    was = picture(story.model)
    views = story.model._state.image_views()
    pasts = story.model._hindsight.pasts(("pod", "hub/x"), version, at_us, "default-scheduler", 0)
    for _ in zip(range(asked), pasts, strict=False):
        pass
    pasts.close()
    story.model._state.set_image_views(views)
    assert picture(story.model) == was
    list(story.model.settle(None))
    assert picture(story.model) == was


def test_a_binding_left_open_is_stored_at_once_and_judged_once() -> None:
    assembler = Assembler(lambda _labels, _namespace: "user", Known(), Story(a=4, b=4).model)
    for kind in (PODS, NODES):
        assembler.listing(kind)
        assembler.synced(kind, 1)
    for name in ("a", "b"):
        assembler.node(name, node(name, 1), BEGIN)
    assembler.pod("hub/there", pod("there", 2, "b", 2), BEGIN)
    assembler.pod("hub/p", pod("p", 3), BEGIN)
    told = assembler.pod("hub/p", pod("p", 4, "b"), BEGIN)
    (first,) = [one for one in told if isinstance(one, DecisionRecord)]
    assert (first.node_name, first.model) == ("b", None)
    assert not [one for one in told if isinstance(one, CandidatesRecord)]
    assert assembler.settle(BEGIN + SECOND // 2) == []
    decision, candidates = assembler.settle(None)
    assert isinstance(decision, DecisionRecord)
    assert decision == replace(
        first, model="differs", model_node="a", model_note="the model prefers a", nodes_total=2, nodes_feasible=2
    )
    assert isinstance(candidates, CandidatesRecord)
    assert candidates.number == 2
    assert assembler.settle(None) == []
