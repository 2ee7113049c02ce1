"""Counts of starts begin at 0, and a pod's labels make no time series without end."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from roost_core.start_counts import MAX_HUBS, OTHER_HUBS, StartCounts


def counts(*phases: str) -> tuple[StartCounts, CollectorRegistry]:
    registry = CollectorRegistry()
    labels = ("pod_class", "hub", *(["phase"] if phases else []))
    return StartCounts(
        Counter("starts", "Starts.", ("pod_class", "hub", "result"), registry=registry),
        Histogram("seconds", "Seconds.", labels, registry=registry),
        ("started", "failed"),
        phases,
    ), registry


def test_every_result_and_phase_of_a_class_and_hub_begins_at_0() -> None:
    starts, registry = counts("pull", "ready")
    whose = starts.begin("user", "hub.a")
    labels = {"pod_class": "user", "hub": "hub.a"}
    for result in ("started", "failed"):
        assert registry.get_sample_value("starts_total", {**labels, "result": result}) == 0
    for phase in ("pull", "ready"):
        assert registry.get_sample_value("seconds_count", {**labels, "phase": phase}) == 0
    starts.count(whose, "started")
    starts.observe(whose, -1.0, "pull")
    assert starts.begin("user", "hub.a") == whose
    assert registry.get_sample_value("starts_total", {**labels, "result": "started"}) == 1
    assert registry.get_sample_value("seconds_count", {**labels, "phase": "pull"}) == 1
    assert registry.get_sample_value("seconds_sum", {**labels, "phase": "pull"}) == 0


def test_hubs_beyond_a_bound_are_one_in_every_class() -> None:
    starts, _ = counts()
    named = [starts.begin("user", f"hub-{number}") for number in range(MAX_HUBS + 2)]
    assert named[MAX_HUBS - 1 :] == [
        ("user", f"hub-{MAX_HUBS - 1}"),
        ("user", OTHER_HUBS),
        ("user", OTHER_HUBS),
    ]
    assert starts.begin("build", "hub-0") == ("build", "hub-0")
