"""Metrics of starts, live: each counts once, with the phases that reports know, in whatever order
its news comes.
"""

import time
from collections.abc import Iterable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from lab.tests.objects import pod_object, pod_reading
from lab.tests.recorded import pull_record
from lab.tests.told import Story, Thing, stories
from roost_core.objects.timestamps import read_moment
from roost_core.start_counts import MAX_HUBS, OTHER_HUBS
from roost_lab.pages.dates import as_date
from roost_lab.recorder.recording import live_starts
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import Change
from roost_lab.recorder.recording.hub_log import SERVER_ANNOTATION, USER_ANNOTATION, read_hub_line
from roost_lab.recorder.recording.metrics import RecorderMetrics
from roost_lab.recorder.recording.reading import PodReading
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store.records import PODS, PhaseRecord, PullRecord, Record, StoredState

SECOND = 1_000_000
BEGIN = int(read_moment("2026-11-23T08:00:00Z") or 0)


def stamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGIN + second))


def pod(
    name: str,
    *,
    hub: str = "hub",
    namespace: str = "hub",
    bound: int | None = None,
    started: int | None = None,
    ready: int | None = None,
    phase: str = "Pending",
    images: tuple[str, ...] = ("me/image:1",),
    server: str | None = None,
) -> PodReading:
    """A pod, created at second 0; the others are seconds after it."""
    reached = [
        (kind, second)
        for kind, second in (("PodScheduled", bound), ("Ready", ready))
        if second is not None
    ]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": stamp(second)}
        for kind, second in reached
    ]
    state = {"running": {"startedAt": stamp(started)}} if started is not None else {}
    item = pod_object(
        name,
        on="node" if bound is not None else "",
        created=stamp(0),
        labels={"release": hub},
        conditions=conditions,
        status={
            "phase": phase,
            "containerStatuses": [{"name": f"c{n}", "state": state} for n in range(len(images))],
        },
        containers=[{"name": f"c{number}", "image": image} for number, image in enumerate(images)],
    )
    if server is not None:
        item["metadata"]["annotations"] = {USER_ANNOTATION: "ada", SERVER_ANNOTATION: server}
    item["metadata"] |= {"uid": name, "namespace": namespace}
    return pod_reading(item)


def ready_pod(name: str, **more: Any) -> PodReading:
    return pod(name, bound=2, started=12, ready=13, phase="Running", **more)


def pull(uid: str, image: str = "me/image:1", seconds: float | None = 9.5) -> PullRecord:
    return pull_record(uid, 0, image, seconds)


def phases(told: Iterable[Record]) -> dict[str, float]:
    """Phases, and how many seconds after BEGIN each was."""
    return {
        str(one.phase): one.at_us / SECOND - BEGIN for one in told if isinstance(one, PhaseRecord)
    }


class Recorder:
    """An assembler whose pods are followed, and what the metrics say."""

    def __init__(self, pod_class: str = "user") -> None:
        self.metrics = RecorderMetrics("test")
        self.starts = live_starts.LiveStarts(self.metrics)
        self.assembler = Assembler(lambda _labels, _namespace: pod_class, StoredState())

    def listed(self, *pods: PodReading) -> "Recorder":
        streams = self.assembler.streams
        streams.begin_list(PODS)
        for one in pods:
            seen = streams.observe(PODS, BEGIN * SECOND, is_listed=True)
            self.follow(self.assembler.pod(one.state.key, one, seen))
        self.follow(self.assembler.list_ended(PODS, BEGIN * SECOND))
        return self

    def follow(self, changes: Iterable[Change]) -> list[Record]:
        """The records, with those that the starts make."""
        return [
            record
            for change in changes
            for record in (*change.records, *self.starts.follow(change))
        ]

    def sees(self, *pods: PodReading, at: float | None = None) -> None:
        """at: seconds; None: too late to tell when in its second something happened."""
        for one in pods:
            late_us = 9 * SECOND if at is None else 1
            seen = Observation(int((BEGIN + (at or 0)) * SECOND), late_us)
            self.follow(self.assembler.pod(one.state.key, one, seen))

    def loses(self, one: PodReading, at: float, *, is_told: bool) -> dict[str, float]:
        """Phases, and seconds after BEGIN. is_told: how it stood in the end."""
        seen = Observation(int((BEGIN + at) * SECOND))
        changes = self.assembler.pod_deleted(one.state.key, one if is_told else None, seen)
        return phases(self.follow(changes))

    def pulled(self, record: PullRecord) -> None:
        """What a kubelet's Event makes."""
        self.starts.follow(Change(records=[record]))

    def hears(self, said: str, at: float) -> dict[str, float]:
        """What a line of the hub's log makes."""
        now = as_date(int((BEGIN + at) * SECOND))
        head = (
            f"{now:%Y-%m-%dT%H:%M:%S.%f}000Z [I {now:%Y-%m-%d %H:%M:%S}.000 JupyterHub base:1192]"
        )
        news = read_hub_line(f"{head} {said}")
        assert news is not None
        return phases(self.starts.hub_told("hub", news, int((BEGIN + at) * SECOND)))

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        """Values by the values of the labels, in order of the labels' names; zeros are left out."""
        families = text_string_to_metric_families(self.metrics.text().decode())
        samples = [
            sample for family in families for sample in family.samples if sample.name == name
        ]
        found = {
            tuple(value for _, value in sorted(one.labels.items())): one.value for one in samples
        }
        return {labels: value for labels, value in found.items() if value}

    def results(self) -> dict[str, float]:
        return {labels[2]: value for labels, value in self.samples("roost_starts_total").items()}

    def sums(self) -> dict[str, float]:
        return {
            labels[1]: value
            for labels, value in self.samples("roost_start_phase_seconds_sum").items()
        }

    def counts(self) -> dict[str, float]:
        return {
            labels[1]: value
            for labels, value in self.samples("roost_start_phase_seconds_count").items()
        }


def told(recorder: Recorder, thing: Thing) -> None:
    """What a line of a story does, or says of the metrics."""
    kind, plain, named = thing
    if kind in ("results", "sums", "phases"):
        found = {"results": recorder.results, "sums": recorder.sums, "phases": recorder.counts}[
            kind
        ]()
        assert found == named, thing
    elif kind == "phase":
        assert named.items() <= recorder.counts().items(), thing
    elif kind == "no-phase":
        assert plain[0] not in recorder.counts(), thing
    elif kind == "lists":
        recorder.listed(*(seen(*one.split(":")) for one in plain))
    elif kind == "sees":
        at = named.pop("at", None)
        recorder.sees(seen(*plain, **named), at=at)
    elif kind == "loses":
        expected = {key: named.pop(key) for key in ("gone", "gave-up") if key in named}
        phases = recorder.loses(seen(*plain, **named), at=5, is_told=not expected)
        assert not expected or phases == expected, thing
    elif kind == "pulled":
        seconds = None if plain[1] == "warm" else plain[1]
        recorder.pulled(pull(plain[0], named.get("image", "me/image:1"), seconds))
    elif kind == "log":
        recorder.starts.hub_log("hub", BEGIN * SECOND, is_read=plain == ("read",))
    elif kind == "hears":
        assert recorder.hears(*plain) == named, thing
    else:
        assert (kind, plain[0]) == ("time", "is")
        recorder.starts.give_up(BEGIN * SECOND + live_starts.TOLD_AFTER_US - ("nearly" in plain))


def seen(name: str, up: str = "", **how: Any) -> PodReading:
    return ready_pod(name, **how) if up else pod(name, **how)


@stories("live-starts")
def test_each_start_counts_once_with_its_phases(story: Story) -> None:
    kinds = [thing.kind for thing in story.things]
    classes = [thing.plain[0] for thing in story.things if thing.kind == "of"]
    recorder = Recorder(*classes)
    if kinds[0] not in ("lists", "lists-nothing-yet"):
        recorder.listed()
    for thing in story.things:
        if thing.kind not in ("of", "lists-nothing-yet"):
            told(recorder, thing)
    story.check(recorder.metrics.text().decode())


def test_hubs_whose_releases_have_one_name_are_told_apart_by_their_namespaces() -> None:
    recorder = Recorder().listed()
    recorder.sees(
        *(ready_pod(name, hub="jupyterhub", namespace=name) for name in ("maths", "physics"))
    )
    hubs = {labels[0] for labels in recorder.samples("roost_start_phase_seconds_count")}
    assert hubs == {"jupyterhub.maths", "jupyterhub.physics"}


def test_labels_of_pods_make_no_more_than_so_many_time_series() -> None:
    recorder = Recorder().listed()
    for number in range(MAX_HUBS + 5):
        recorder.sees(ready_pod(f"pod-{number}", hub=f"hub-{number:03}"))
    hubs = [labels[0] for labels in recorder.samples("roost_start_phase_seconds_count")]
    assert len(set(hubs)) == MAX_HUBS + 1
    assert recorder.samples("roost_start_phase_seconds_count")[OTHER_HUBS, "whole", "user"] == 5


def test_events_of_other_programs_pods_are_not_kept_for_ever() -> None:
    recorder = Recorder().listed()
    for number in range(live_starts.MAX_UNKNOWN + 10):
        recorder.pulled(pull(f"pod-{number}"))
    recorder.sees(ready_pod("pod-0"), ready_pod(f"pod-{live_starts.MAX_UNKNOWN}"))
    recorder.starts.give_up(BEGIN * SECOND + live_starts.TOLD_AFTER_US)
    assert recorder.results() == {"cold": 1, "unknown": 1}
