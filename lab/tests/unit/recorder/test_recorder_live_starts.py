"""Metrics of starts, live: each counts once, with the phases that reports know, in whatever order its news comes."""

import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lab.tests.objects import pod_object, pod_reading
from lab.tests.recorded import pull_record
from roost_core.objects.timestamps import read_moment
from roost_lab.pages.dates import as_date
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.hub_log import SERVER_ANNOTATION, USER_ANNOTATION, read_hub_line
from roost_lab.recorder.recording.live_starts import (
    MAX_HUBS,
    MAX_UNKNOWN,
    OTHER_HUBS,
    PHASES,
    TOLD_AFTER_US,
    LiveStarts,
)
from roost_lab.recorder.recording.metrics import RecorderMetrics
from roost_lab.recorder.recording.reading import PodReading
from roost_lab.recorder.store.records import PODS, PhaseRecord, PullRecord, StoredState
from roost_lab.report import start_phases

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
    reached = [(kind, second) for kind, second in (("PodScheduled", bound), ("Ready", ready)) if second is not None]
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": stamp(second)} for kind, second in reached]
    state = {"running": {"startedAt": stamp(started)}} if started is not None else {}
    item = pod_object(
        name,
        on="node" if bound is not None else "",
        created=stamp(0),
        labels={"release": hub},
        conditions=conditions,
        status={"phase": phase, "containerStatuses": [{"name": f"c{n}", "state": state} for n in range(len(images))]},
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


def hub_line(said: str, at: float) -> str:
    moment = as_date(int((BEGIN + at) * SECOND))
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}000Z [I {moment:%Y-%m-%d %H:%M:%S}.000 JupyterHub base:1192] {said}"


TOOK = "User ada took 30.500 seconds to start"


class Recorder:
    """An assembler whose pods are followed, and what the metrics say."""

    def __init__(self, pod_class: str = "user") -> None:
        self.metrics = RecorderMetrics("test")
        self.starts = LiveStarts(self.metrics)
        self.assembler = Assembler(lambda _labels, _namespace: pod_class, StoredState(), starts=self.starts)

    def listed(self, *pods: PodReading) -> "Recorder":
        self.assembler.listing(PODS)
        for one in pods:
            self.assembler.pod(one.state.key, one, BEGIN * SECOND, listed=True)
        self.assembler.synced(PODS, BEGIN * SECOND)
        return self

    def sees(self, *pods: PodReading, at: float | None = None) -> None:
        """at: seconds; None: too late to tell when in its second something happened."""
        for one in pods:
            late_us = 9 * SECOND if at is None else 1
            self.assembler.pod(one.state.key, one, int((BEGIN + (at or 0)) * SECOND), late_us=late_us)

    def loses(self, one: PodReading) -> None:
        self.assembler.pod_deleted(one.state.key, one, BEGIN * SECOND)

    def hears(self, said: str, at: float) -> list[tuple[str, float]]:
        """What a line of the hub's log makes: phases, and seconds after BEGIN."""
        news = read_hub_line(hub_line(said, at))
        assert news is not None
        told = self.starts.hub_told("hub", news, int((BEGIN + at) * SECOND))
        return [(one.phase, one.at_us / SECOND - BEGIN) for one in told if isinstance(one, PhaseRecord)]

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        """Values by the values of the labels, in order of the labels' names; zeros are left out."""
        families = text_string_to_metric_families(self.metrics.text().decode())
        found = {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
            if sample.name == name
        }
        return {labels: value for labels, value in found.items() if value}

    def results(self) -> dict[str, float]:
        return {labels[2]: value for labels, value in self.samples("roost_starts_total").items()}

    def sums(self) -> dict[str, float]:
        return {labels[1]: value for labels, value in self.samples("roost_start_phase_seconds_sum").items()}

    def counts(self) -> dict[str, float]:
        return {labels[1]: value for labels, value in self.samples("roost_start_phase_seconds_count").items()}


def test_a_start_has_the_phases_that_reports_know() -> None:
    recorder = Recorder().listed()
    recorder.sees(pod("ada"), pod("ada", bound=2))
    recorder.starts.pulled(pull("ada"))
    assert recorder.counts() == {}
    recorder.sees(ready_pod("ada"), ready_pod("ada"))
    assert recorder.sums() == {"node": 2, "containers": 10, "ready": 1, "whole": 13, "pull": 9.5}
    assert set(recorder.counts().values()) == {1}
    assert set(PHASES) == set(start_phases.PHASES)


def test_where_a_hubs_log_is_read_a_start_ends_with_the_hubs_word() -> None:
    recorder = Recorder().listed()
    recorder.starts.hub_log("hub", BEGIN * SECOND, is_read=True)
    recorder.sees(pod("ada", server=""), at=0.25)
    recorder.sees(pod("ada", server="", bound=2), at=2.5)
    recorder.sees(ready_pod("ada", server=""), at=13.5)
    recorder.starts.pulled(pull("ada"))
    assert recorder.results() == {}
    # A named server of the same user is another one.
    assert recorder.hears("User ada:second took 1.000 seconds to start", 20) == []
    assert recorder.hears(TOOK, 30) == [("answered", 30.0), ("asked", -0.5)]
    assert recorder.hears(TOOK, 30) == []
    assert recorder.results() == {"cold": 1}
    # The watch told of creation and binding; the rest is in the pods' whole seconds.
    assert recorder.sums() == {
        "hub": 0.75, "node": 2.25, "containers": 10, "ready": 1, "answer": 18, "whole": 30.5, "pull": 9.5
    }  # fmt: skip


FAILED = "ada's server failed to start in 60 seconds, giving up."


@pytest.mark.parametrize("server", ["", "second"])
@pytest.mark.parametrize("is_ready", [True, False])
def test_a_start_that_the_hub_gives_up_has_failed_whatever_its_pod_says(server: str, is_ready: bool) -> None:
    recorder = Recorder().listed()
    recorder.starts.hub_log("hub", BEGIN * SECOND, is_read=True)
    recorder.sees(pod("ada", server=server), *([ready_pod("ada", server=server)] if is_ready else []), at=0.25)
    recorder.starts.pulled(pull("ada"))
    assert recorder.hears(FAILED, 60) == [("start-failed", 60.0)]
    recorder.loses(ready_pod("ada", server=server))
    assert (recorder.results(), recorder.counts().get("whole")) == ({"failed": 1}, None)


def test_a_pod_that_goes_before_its_hub_has_said_anything_was_given_up_unless_the_log_is_not_read() -> None:
    for is_read, gone in ((True, ["gone", "gave-up"]), (False, ["gone"])):
        recorder = Recorder().listed()
        recorder.starts.hub_log("hub", BEGIN * SECOND, is_read=is_read)
        recorder.sees(pod("ada", server=""), at=0.25)
        told = recorder.assembler.pod_deleted("hub/ada", None, (BEGIN + 5) * SECOND)
        assert sorted(one.phase for one in told if isinstance(one, PhaseRecord)) == sorted(gone)
        # The hub's own word, later, is the better one.
        assert recorder.hears(FAILED, 60) == [("start-failed", 60.0)]
        assert recorder.results() == {"failed": 1}


def test_without_a_log_that_can_be_read_a_start_ends_when_its_pod_is_ready() -> None:
    recorder = Recorder().listed()
    recorder.starts.hub_log("hub", BEGIN * SECOND, is_read=True)
    recorder.sees(pod("ada", server=""))
    recorder.sees(ready_pod("ada", server=""))
    recorder.starts.hub_log("hub", BEGIN * SECOND, is_read=False)
    recorder.starts.pulled(pull("ada", seconds=None))
    recorder.loses(ready_pod("ada", server=""))
    recorder.sees(pod("bob"))
    recorder.sees(ready_pod("bob"))
    recorder.starts.pulled(pull("bob", seconds=None))
    assert recorder.results() == {"warm": 2}


@pytest.mark.parametrize(("pulls", "result"), [([None], "warm"), ([9.5], "cold"), ([None, 9.5], "warm")])
@pytest.mark.parametrize("told_first", [True, False])
def test_a_start_is_warm_or_cold_whatever_comes_first(pulls: list[float | None], result: str, told_first: bool) -> None:
    recorder = Recorder().listed()
    if not told_first:
        recorder.sees(ready_pod("ada"))
    for seconds in pulls:
        recorder.starts.pulled(pull("ada", seconds=seconds))
    if told_first:
        recorder.sees(ready_pod("ada"))
    recorder.starts.give_up(BEGIN * SECOND + TOLD_AFTER_US)
    recorder.loses(ready_pod("ada"))
    assert recorder.results() == {result: 1}


def test_a_start_with_two_images_is_cold_when_one_was_pulled() -> None:
    recorder = Recorder().listed()
    images = ("me/image:1", "me/other:1")
    recorder.sees(ready_pod("ada", images=images))
    recorder.starts.pulled(pull("ada", seconds=None))
    assert recorder.results() == {}
    recorder.starts.pulled(pull("ada", images[1]))
    assert recorder.results() == {"cold": 1}


def test_a_start_whose_events_never_come_is_counted_as_unknown_after_a_while() -> None:
    recorder = Recorder().listed()
    recorder.sees(ready_pod("ada"))
    recorder.starts.give_up(BEGIN * SECOND + TOLD_AFTER_US - 1)
    assert recorder.results() == {}
    recorder.starts.give_up(BEGIN * SECOND + TOLD_AFTER_US)
    assert recorder.results() == {"unknown": 1}


def test_a_pod_that_goes_before_it_is_ready_has_failed_and_has_no_phases() -> None:
    recorder = Recorder().listed(pod("bob"))
    recorder.sees(pod("ada"))
    recorder.loses(pod("ada", bound=2))
    # Missing from the next list.
    recorder.listed()
    assert recorder.results() == {"failed": 2}
    assert recorder.counts() == {}


def test_a_build_that_finished_between_two_looks_has_started() -> None:
    recorder = Recorder("build").listed()
    recorder.sees(pod("build-a"), pod("build-a", bound=2, started=12, phase="Succeeded"))
    recorder.starts.pulled(pull("build-a", seconds=None))
    recorder.loses(pod("build-a", bound=2, started=12, phase="Succeeded"))
    assert recorder.sums() == {"node": 2, "containers": 10, "whole": 12}
    assert recorder.results() == {"warm": 1}


def test_what_had_started_before_the_recorder_does_not_count_and_what_was_starting_does() -> None:
    recorder = Recorder()
    # Events may be listed first.
    recorder.starts.pulled(pull("old"))
    recorder.listed(ready_pod("old"), pod("ada"))
    recorder.starts.pulled(pull("old"))
    recorder.sees(ready_pod("old"), ready_pod("ada"))
    recorder.starts.pulled(pull("ada"))
    assert recorder.results() == {"cold": 1}
    assert recorder.counts()["whole"] == 1
    # A later list shows what happened since.
    recorder.listed(ready_pod("old"), ready_pod("ada"), ready_pod("new"))
    assert recorder.counts()["whole"] == 2


def test_hubs_whose_releases_have_one_name_are_told_apart_by_their_namespaces() -> None:
    recorder = Recorder().listed()
    recorder.sees(*(ready_pod(name, hub="jupyterhub", namespace=name) for name in ("maths", "physics")))
    hubs = {labels[0] for labels in recorder.samples("roost_start_phase_seconds_count")}
    assert hubs == {"jupyterhub.maths", "jupyterhub.physics"}


@pytest.mark.parametrize("pod_class", ["", "placeholder"])
def test_pods_that_nobody_waits_for_do_not_count(pod_class: str) -> None:
    recorder = Recorder(pod_class).listed()
    recorder.sees(pod("ada"), ready_pod("ada"))
    recorder.loses(ready_pod("ada"))
    assert 'pod_class="' not in recorder.metrics.text().decode()


def test_labels_of_pods_make_no_more_than_so_many_time_series() -> None:
    recorder = Recorder().listed()
    for number in range(MAX_HUBS + 5):
        recorder.sees(ready_pod(f"pod-{number}", hub=f"hub-{number:03}"))
    hubs = [labels[0] for labels in recorder.samples("roost_start_phase_seconds_count")]
    assert len(set(hubs)) == MAX_HUBS + 1
    assert recorder.samples("roost_start_phase_seconds_count")[OTHER_HUBS, "whole", "user"] == 5


def test_events_of_other_programs_pods_are_not_kept_for_ever() -> None:
    recorder = Recorder().listed()
    for number in range(MAX_UNKNOWN + 10):
        recorder.starts.pulled(pull(f"pod-{number}"))
    recorder.sees(ready_pod("pod-0"), ready_pod(f"pod-{MAX_UNKNOWN}"))
    recorder.starts.give_up(BEGIN * SECOND + TOLD_AFTER_US)
    assert recorder.results() == {"cold": 1, "unknown": 1}
