from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lab.tests.moments import BEGIN, SECOND
from lab.tests.objects import BOUND, node_object, pod_object
from lab.tests.recorded import empty_store, record_of
from lab.tests.told import Story, Thing, stories, thing_of
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import pulled_label
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import find_pods, read_story
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import Change
from roost_lab.recorder.recording.judging import Judging
from roost_lab.recorder.recording.reading import read_node, read_pod
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.store.records import NODES, PODS, Record, StoredState, WaitingRecord

IMAGE = "quay.io/me/image:1"
GATE = pulled_label("hub", "hub", IMAGE)
NOW_US = BEGIN + 5 * SECOND
# When nothing else is said, of a cluster: the last sign of life of the recorder.
HEARD_US = BEGIN + 65 * SECOND
OBJECTS = ("Node", "bound", "waits")


def explained(folder: Path, name: str, records: list[Record], heard_us: int | None) -> str:
    """What `roost why` says of a pod when these are stored. heard_us: until when the record is
    complete.
    """
    store = empty_store(folder)
    store.write(records, {} if heard_us is None else {PODS: ("1", heard_us)})
    text = explain(read_story(store, find_pods(store, name)[0]))
    store.close()
    return text


def object_of(thing: Thing) -> JSONObject:
    """A Node; a pod that is `bound`; or one that `waits`, refused by its scheduler, perhaps
    `gated`.
    """
    (name, *flags), named = thing.plain, dict(thing.named)
    if thing.kind == "Node":
        gate = {GATE: named.pop("gate")} if "gate" in named else {}
        named["labels"] = {**named.pop("labels", {}), **gate}
        return node_object(name, images=tuple(named.pop("image", "").split()), **texts(named))
    if "gated" in flags:
        term = {"matchExpressions": [{"key": GATE, "operator": "NotIn", "values": ["pulling"]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        named["affinity"] = {"nodeAffinity": required}
    item = pod_object(name, image=IMAGE, **texts({"cpu": 1, **named}))
    if thing.kind == "waits":
        said = "0/2 nodes are available: 2 Insufficient cpu."
        item["status"] = {
            "conditions": [{**BOUND, "status": "False", "reason": "Unschedulable", "message": said}]
        }
    return item


def texts(named: dict[str, Any]) -> dict[str, Any]:
    """Quantities are texts."""
    return {key: str(value) if key in ("cpu", "pods") else value for key, value in named.items()}


def seen(
    nodes: list[JSONObject], pods: list[JSONObject], *, is_listed: bool = False
) -> list[Record]:
    """What the recorder stores of these nodes and pods; is_listed: they were there before it
    began.
    """
    model = Model({"default-scheduler": default_profile(NEWEST_MINOR)})
    classes = {"user-placeholder": "placeholder"}
    assembler = Assembler(
        lambda labels, _namespace: classes.get(labels.get("component", ""), "user"), StoredState()
    )
    judging = Judging(model)
    records: list[Record] = []

    def tell(changes: Iterable[Change]) -> None:
        for change in changes:
            records.extend(judging.follow(change))

    def tell_pods(now_us: int) -> None:
        for item in pods:
            key = f"hub/{item['metadata']['name']}"
            seen = assembler.streams.observe(PODS, now_us, is_listed=is_listed)
            tell(assembler.pod(key, read_pod(item, (), {}), seen))

    for kind in (NODES, PODS):
        assembler.streams.begin_list(kind)
        for item in nodes if kind == NODES else []:
            listed = assembler.streams.observe(NODES, BEGIN, is_listed=True)
            tell(assembler.node(item["metadata"]["name"], read_node(item), listed))
        if kind == PODS and is_listed:
            tell_pods(BEGIN)
        tell(assembler.list_ended(kind, NOW_US))
    if not is_listed:
        tell_pods(NOW_US)
    return records


@stories("whys")
def test_what_is_stored_is_told_in_these_words(tmp_path: Path, story: Story) -> None:
    objects = [
        (thing.kind == "Node", object_of(thing)) for thing in story.things if thing.kind in OBJECTS
    ]
    records = seen(
        *([item for is_node, item in objects if is_node is wanted] for wanted in (True, False))
    )
    records += [record_of(thing) for thing in story.things if thing.kind not in {*OBJECTS, "heard"}]
    heard = next(
        (thing.plain[0] for thing in story.things if thing.kind == "heard"),
        HEARD_US if objects else None,
    )
    text = explained(tmp_path, story.about, records, heard)
    story.check(text)
    assert "\x1b" not in text


def test_pods_that_waited_before_the_recorder_began_are_examined_once_all_is_known() -> None:
    pods = [object_of(thing_of(line)) for line in ("waits p cpu=500", "bound u on=a")]
    told = seen([node_object("a")], pods, is_listed=True)
    assert [(one.pod_uid, one.number) for one in told if isinstance(one, WaitingRecord)] == [
        ("uid-p", 1)
    ]


def test_the_last_attempt_replaces_the_one_before(tmp_path: Path) -> None:
    pod = object_of(thing_of("waits p cpu=500"))
    first, then = (seen([node_object(name) for name in names], [pod]) for names in ("a", "ab"))
    assert "  b: is too small" in explained(tmp_path, "p", [*first, *then], HEARD_US)
