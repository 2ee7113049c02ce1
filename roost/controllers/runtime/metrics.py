"""All Prometheus metrics of the controllers, in a registry of their own.

Plans report gauges (`Planned.gauges`), shown as last reported; the others count what was done.
Names follow the conventions: base units, `_total` on counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from roost.controllers.contract.actions import Done, Gauges, PlanGauge
from roost_core.objects.node import Node
from roost_core.program_metrics import ProgramMetrics, show_only
from roost_core.start_counts import START_BUCKETS, StartCounts

PREFIX: Final = "roost_controllers_"
# Seconds. A cycle on a large cluster takes tenths of a second.
CYCLE_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# Results of a start.
STARTED: Final = "started"
FAILED: Final = "failed"


class ControllersMetrics(ProgramMetrics, Collector):
    """All metrics; one object a process."""

    def __init__(self, version: str, definitions: Iterable[PlanGauge] = ()) -> None:
        super().__init__(PREFIX)
        self._definitions = {definition.name: definition for definition in definitions}
        # The gauges of the last plans, by controller; replaced whole, for scrapes read it from
        # other threads.
        self._planned: dict[str, Gauges] = {}
        self.registry.register(self)
        self._leader = self.gauge("leader", "1 while this replica holds the Lease.")
        self._actions = self.counter(
            "actions",
            "Actions of plans, by controller, kind and outcome.",
            "controller",
            "kind",
            "outcome",
        )
        self._plan_seconds = self.histogram(
            "plan_duration_seconds",
            "Time to make one plan, by controller.",
            CYCLE_BUCKETS,
            "controller",
        )
        self.plan_failures = self.counter(
            "plan_failures",
            "Plans that failed with an internal error; nothing of them was carried out.",
            "controller",
        )
        self.plans_put_off = self.counter(
            "plans_put_off",
            "Plans that a cycle had no time for: the last one stays in force, and the next cycle"
            " begins with it.",
            "controller",
        )
        starts = self.counter(
            "starts",
            "Starts of pods: started (its containers run), or failed (gone before).",
            "pod_class",
            "hub",
            "result",
        )
        start_seconds = self.histogram(
            "start_seconds",
            "Seconds until a pod's containers ran, by class and hub.",
            START_BUCKETS,
            "pod_class",
            "hub",
        )
        self.starts = StartCounts(starts, start_seconds, (STARTED, FAILED))
        self._oldest_pending = self.gauge(
            "oldest_pending_seconds",
            "Longest wait of a pod whose containers don't run yet, by what it waits for; 0: none."
            " Counted from binding while it waits for its volume or address, else from creation.",
            "pod_class",
            "hub",
            "waits_for",
        )
        self._late_pods = self.gauge(
            "late_pods",
            "Pods that have waited for four minutes as oldest_pending_seconds counts, by what they"
            " wait for.",
            "pod_class",
            "hub",
            "waits_for",
        )
        self.requests = self.counter("api_requests", "Requests sent to the API server.", "verb")
        self.watch_errors = self.counter(
            "watch_errors", "Broken watches and failed lists, by kind.", "kind"
        )
        self.evictions = self.counter("evictions", "Eviction requests sent, whatever the answer.")
        self._eviction_budget = self.gauge(
            "eviction_budget_per_minute", "Evictions allowed within any minute."
        )
        self._pressed_disks = self.gauge(
            "nodes_under_disk_pressure",
            "1 for each node under disk pressure: it takes no pods, and evicts some.",
            "node",
        )
        self._certificate_expiry = self.gauge(
            "certificate_expiry_timestamp_seconds",
            "When the webhook's certificates that the leader keeps end, in Unix time.",
            "kind",
        )
        self.gauge("build_info", "1 for the version that runs.", "version").labels(version).set(1)

    def ask_leader(self, is_leader: Callable[[], bool]) -> None:
        """Ask at each scrape whether this replica leads: a turn may hang for longer than the Lease
        is held.
        """
        self._leader.set_function(is_leader)

    def forget_plans(self) -> None:
        """Show no plan's gauges, and no disks: a replica that doesn't lead looks at nothing."""
        self._planned = {}
        self._pressed_disks.clear()

    def show_pressed_disks(self, nodes: Iterable[Node]) -> None:
        """Show which of these nodes have the taint of disk pressure, and no others."""
        show_only(self._pressed_disks, {(node.name,): 1 for node in nodes if node.has_full_disk})

    def show_certificates(self, ends: Mapping[str, float]) -> None:
        """Show when `ca` and `leaf` expire, in Unix time, and no other kinds."""
        show_only(self._certificate_expiry, {(kind,): ends_at for kind, ends_at in ends.items()})

    def show_plan(self, controller: str, gauges: Gauges, seconds: float) -> None:
        """Show a plan's gauges, and how long it took."""
        unknown = gauges.keys() - self._definitions.keys()
        if unknown:
            raise KeyError(f"gauges without a definition: {', '.join(sorted(unknown))}")
        self._planned = {**self._planned, controller: gauges}
        # Created with 0: for Prometheus, a counter that first appears as 1 has not increased.
        self.plan_failures.labels(controller)
        self.plans_put_off.labels(controller)
        self._plan_seconds.labels(controller).observe(seconds)

    def show_pending(
        self,
        seconds: Mapping[tuple[str, str, str], float],
        late: Mapping[tuple[str, str, str], int],
    ) -> None:
        """Show how long the oldest pending pod has waited by class, hub and what it waits for, how
        many have waited for long, and no others. In seconds.
        """
        show_only(self._oldest_pending, seconds)
        show_only(self._late_pods, late)

    def count_done(self, controller: str, done: Iterable[Done]) -> None:
        """Count actions by outcome."""
        for action, outcome in done:
            self._actions.labels(controller, type(action).__name__, outcome.value).inc()

    def show_eviction_budget(self, per_minute: int) -> None:
        """Show how many evictions are allowed."""
        self._eviction_budget.set(per_minute)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges of the last plans."""
        latest = {
            name: values for gauges in self._planned.values() for name, values in gauges.items()
        }
        for name, definition in self._definitions.items():
            family = GaugeMetricFamily(PREFIX + name, definition.help, labels=definition.labels)
            for values, amount in sorted(latest.get(name, {}).items()):
                family.add_metric(values, amount)
            yield family
