"""Every Prometheus metric of the webhook, in a registry of its own.

Names follow the conventions: base units, `_total` on counters, no label whose values a pod's author
can choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from roost_core.http.server import Drop
from roost_core.program_metrics import ProgramMetrics, show_only
from webhook.admission import Decision, ReviewResult

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge

# Seconds. A review takes well under a millisecond; the last buckets are the API server's time-outs.
DURATION_BUCKETS: Final = (
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.0,
    5.0,
)
# The `class` label of a review whose pod has no class.
NO_CLASS: Final = "none"


class WebhookMetrics(ProgramMetrics):
    """All metrics; one object per process."""

    def __init__(self, version: str) -> None:
        super().__init__()
        # Public metrics are set by others, gauges through `show`.
        self._reviews = self.counter(
            "roost_webhook_reviews",
            "Pods reviewed, by their class and what came of it.",
            "class",
            "result",
        )
        self._durations = self.histogram(
            "roost_webhook_review_duration_seconds",
            "Time to answer one review, from body to answer.",
            DURATION_BUCKETS,
        )
        self._degradations = self.counter(
            "roost_webhook_gate_degradations",
            "User pods let through without requiring their images, by reason.",
            "class",
            "reason",
        )
        self._beyond_bounds = self.counter(
            "roost_webhook_reviews_beyond_bounds",
            "Pods admitted as they were sent because their review asked for more than one may, by"
            " bound.",
            "bound",
        )
        self._dropped = self.counter(
            "roost_webhook_reviews_dropped",
            "Reviews dropped unread because nobody would have waited for the answer, by reason.",
            "reason",
        )
        for drop in Drop:
            self._dropped.labels(drop.value).inc(0)
        self._left_to_cluster = self.counter(
            "roost_webhook_pods_left_to_cluster_scheduler",
            "Pods that kept the cluster's own scheduler because Roost's was away, by how that was"
            " known.",
            "class",
            "reason",
        )
        self.waiting = self.gauge(
            "roost_webhook_pods_waiting_for_scheduler",
            "Pods there now that name Roost's scheduler and have no node, by class.",
            "class",
        )
        self._lease_age = self.gauge(
            "roost_webhook_lease_age_seconds",
            "Time since a part of Roost last renewed its Lease.",
            "part",
        )
        self.part_away = self.gauge(
            "roost_webhook_part_away", "1 while nobody renews the Lease of a part of Roost.", "part"
        )
        self.ring_nodes = self.gauge(
            "roost_webhook_ring_nodes", "Nodes that a class's repositories live on.", "class"
        )
        self.policy_reload_failures = self.counter(
            "roost_webhook_policy_reload_failures", "Policies refused; the last good one stayed."
        )
        self.policy_reload_failures.inc(0)
        self.certificate_expiry = self.gauge(
            "roost_webhook_certificate_expiry_timestamp_seconds",
            "When a certificate ends, in Unix time.",
            "kind",
        )
        self.unplaced = self.gauge(
            "roost_webhook_unplaced_pods",
            "Pods there now that came through without being placed, by class.",
            "class",
        )
        self.unplaced_seen = self.counter(
            "roost_webhook_unplaced_pods_seen",
            "Pods that came through without being placed, each once.",
            "class",
        )
        self._watch_errors = self.counter(
            "roost_webhook_watch_errors", "Lists and watches that failed.", "kind"
        )
        self.gauge("roost_build_info", "1 for the version that runs.", "version").labels(
            version
        ).set(1)
        # `labels()` takes a lock and builds a tuple: too slow for every review.
        self._review_children: dict[tuple[str, str], Counter] = {}

    def count_review(self, decision: Decision, is_dry_run: bool, seconds: float) -> None:
        """One review: its class, its result, how long it took, and why a pod got less than its
        class has.
        """
        if is_dry_run:
            # A dry run creates no pod: alerts and graphs are about pods.
            return
        pod_class = decision.pod_class or NO_CLASS
        key = (pod_class, decision.result)
        child = self._review_children.get(key)
        if child is None:
            child = self._review_children[key] = self._reviews.labels(*key)
        child.inc()
        self._durations.observe(seconds)
        if decision.result is ReviewResult.BEYOND_BOUNDS:
            self._beyond_bounds.labels(decision.reason).inc()
        if decision.degraded:
            self._degradations.labels(pod_class, decision.degraded).inc()
        if decision.left_to_cluster:
            self._left_to_cluster.labels(pod_class, decision.left_to_cluster).inc()

    def count_drop(self, why: Drop) -> None:
        """One review that was dropped unread."""
        self._dropped.labels(why.value).inc()

    def show_lease_ages(self, age_seconds: Mapping[str, Callable[[], float]]) -> None:
        """Show the age of each part's Lease, read on each scrape; drop all others."""
        self._lease_age.clear()
        for part, read_age in age_seconds.items():
            self._lease_age.labels(part).set_function(read_age)

    def count_watch_error(self, kind: str) -> None:
        """One list or watch that failed."""
        self._watch_errors.labels(kind).inc()


def show(gauge: Gauge, values: Mapping[str, float]) -> None:
    """Show these values by the gauge's one label; those of before disappear."""
    show_only(gauge, {(label,): value for label, value in values.items()})
