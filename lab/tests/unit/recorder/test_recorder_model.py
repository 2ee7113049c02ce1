"""What the model says of bindings, and when it can't be trusted to say anything."""

import json
from typing import Any

import pytest

from lab.tests.moments import BEGIN, SECOND
from lab.tests.objects import node_object, node_reading, pod_object, pod_reading
from lab.tests.recorded import bind_record
from lab.tests.told import Story, Thing, stories, thing_of
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import Change
from roost_lab.recorder.recording.judging import Judging
from roost_lab.recorder.recording.reading import PodReading
from roost_lab.recorder.recording.scheduler_model import UNSEEN_US, Model
from roost_lab.recorder.recording.streams import Observation
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


def pod(name: str, on: str = "", cpu: int = 1, nominated: str = "") -> PodReading:
    status = {"nominatedNodeName": nominated} if nominated else {}
    return pod_reading(pod_object(name, on=on, cpu=str(cpu), status=status))


class Watched:
    """A model that is told of pods and nodes, a millisecond after the other."""

    def __init__(self) -> None:
        self.model = Model({"default-scheduler": default_profile(NEWEST_MINOR)})
        self.now_us = BEGIN
        self.said: list[str] = []

    def tell(self, thing: Thing) -> None:
        (name, *where), how = thing.plain or ("",), dict(thing.named)
        self.now_us += MS
        if thing.kind in ("node", "nodes"):
            for one in [name] if thing.kind == "node" else [f"n{number}" for number in range(name)]:
                images = (how["image"],) if "image" in how else ()
                item = node_object(
                    one, cpu=str(how.get("cpu", 4)), images=images, unschedulable="cordoned" in how
                )
                self.model.node_changed(one, node_reading(item), self.now_us)
        elif thing.kind == "pod":
            self.model.pod_changed(f"hub/{name}", pod(name, **how), "user", self.now_us)
        elif thing.kind == "gone":
            self.model.pod_changed(f"hub/{name}", None, "", self.now_us)
        elif thing.kind == "rests":
            self.now_us += UNSEEN_US
        else:
            self.bound(name, *where, **how)

    def bound(self, name: str, on: str, **how: Any) -> None:
        told = bind_record(f"uid-{name}", self.now_us, on)
        judged, candidates = self.model.judge(told, pod(name, on, **how), self.now_us)
        feasible = f" of {judged.nodes_feasible} of {judged.nodes_total} nodes" if how else ""
        note = f", {judged.model_note}" if judged.model_note else ""
        self.said.append(f"verdict {name} on {on}: {judged.model}{feasible}{note}")
        for row in sorted(
            unpack_candidates(candidates.nodes) if candidates else [],
            key=lambda row: row["node_name"],
        ):
            more = [", has the image"] if row["has_image"] else []
            more += [f", refused: {row['refused']}"] if row["refused"] else []
            self.said.append(
                f"stood {row['node_name']}: {row['free_cpu_millicores']} free{''.join(more)}"
            )


@stories("bindings", "node nodes pod gone rests bound")
def test_a_binding_is_judged_as_the_nodes_stood(story: Story) -> None:
    watched = Watched()
    for thing in story.things:
        watched.tell(thing)
    story.check_drawn(watched.said)


@pytest.mark.parametrize("by_claim", [True, False])
def test_the_model_does_not_judge_by_devices_that_a_pod_claims(*, by_claim: bool) -> None:
    watched = Watched()
    for line in ("node a", "node b", "pod there on=b cpu=2", "rests"):
        watched.tell(thing_of(line))
    item = pod_object("p", on="b", cpu="1")
    if by_claim:
        item["spec"]["resourceClaims"] = [{"name": "gpu"}]
    else:
        item["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"

    def judge() -> tuple[str | None, str]:
        at_us = watched.now_us + MS
        judged, _ = watched.model.judge(bind_record("uid-p", at_us, "b"), pod_reading(item), at_us)
        return judged.model, judged.model_note or ""

    if not by_claim:
        assert judge() == (Verdict.DIFFERS, "the model rejects b: Insufficient example.com/gpu")
    watched.model.surroundings_changed({}, frozenset({"example.com/gpu"}))
    assert judge() == (
        Verdict.UNKNOWN,
        "the model prefers a, but it claims devices, which the model leaves out",
    )
    item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    waiting = watched.model.examine(pod_reading(item), watched.now_us)
    assert waiting is not None
    assert [
        [lack["resource"] for lack in lacks] for lacks in json.loads(waiting.nodes)["lacks"]
    ] == [["cpu"], ["cpu"]]


# 1.33 names the taint in its reason.
@pytest.mark.parametrize("minor", [OLDEST_MINOR, NEWEST_MINOR])
def test_a_taint_is_told_once_whatever_the_minor_says_of_it(minor: int) -> None:
    model = Model({"default-scheduler": default_profile(minor)})
    item = node_object(
        "a", cpu="4", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    )
    model.node_changed("a", node_reading(item), BEGIN)
    waiting = model.examine(pod("p"), BEGIN)
    assert waiting is not None
    assert json.loads(waiting.nodes)["lacks"] == [
        [{"kind": "taint", "taint": "gpu=yes:NoSchedule"}]
    ]


def test_a_binding_is_stored_with_its_verdict_and_the_nodes_as_they_stood() -> None:
    assembler = Assembler(lambda _labels, _namespace: "user", StoredState())
    judging = Judging(Watched().model)
    changes: list[Change] = []
    for kind in (PODS, NODES):
        assembler.streams.begin_list(kind)
        changes += assembler.list_ended(kind, 1)
    for name in ("a", "b"):
        changes += assembler.node(name, node_reading(node_object(name)), Observation(BEGIN))
    changes += assembler.pod("hub/there", pod("there", "b", 2), Observation(BEGIN))
    changes += assembler.pod("hub/p", pod("p"), Observation(BEGIN))
    for change in changes:
        judging.follow(change)
    (binding,) = assembler.pod("hub/p", pod("p", "b"), Observation(BEGIN + SECOND))
    told = judging.follow(binding)
    (decision,) = [record for record in told if isinstance(record, DecisionRecord)]
    assert (decision.node_name, decision.model, decision.model_node) == ("b", "differs", "a")
    assert (decision.model_note, decision.nodes_total, decision.nodes_feasible) == (
        "the model prefers a",
        2,
        2,
    )
    (candidates,) = [record for record in told if isinstance(record, CandidatesRecord)]
    assert candidates.number == 2
