"""Compare what the recorder stored of a played day with what the test was told beside it: nothing lost, no moment off.

Phases stand against each pod's object, by a watch of the test's own, and against its Events: equal, to the resolution
of each. Pulls stand against the kubelet's words, pre-emptions against kube-scheduler's, ends against the test's clock.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from lab.tests.e2e.recorder.played_day import REAL_NODE, US, PlayedDay, Seen, moment_us
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Verdict

Object = dict[str, Any]
# Phase and container; the moment (µs) and its resolution.
Step = tuple[str, str]
At = tuple[int, int]
SECOND_US, MICRO_US = US, 1
# Between two watches that tell of the same end, on a machine that does other things, too.
DELIVERED_US: Final = 20 * US
_PULLING: Final = re.compile(r'Pulling image "([^"]+)"')
_PULLED: Final = re.compile(
    r'Successfully pulled image "([^"]+)" in (\S+) \((\S+) including waiting\)\. Image size: (\d+) bytes'
)
_PRESENT: Final = re.compile(r'image "([^"]+)" already present on machine')
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_UNITS_US: Final = {"h": 3600e6, "m": 60e6, "s": 1e6, "ms": 1e3, "µs": 1.0}


@dataclass
class Comparison:
    """What was found. `differences` should be empty."""

    differences: list[str] = field(default_factory=list)
    # What was compared -> how often.
    compared: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    # Pod class and the model's word.
    model: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def agreement(self) -> float:
        """The share of bindings whose node the model names, too."""
        agrees = sum(count for (_, word), count in self.model.items() if word == Verdict.AGREES)
        return agrees / max(1, sum(self.model.values()))

    def lines(self) -> list[str]:
        """All of it, to be read."""
        compared = ", ".join(f"{what} {count:,}" for what, count in sorted(self.compared.items()))
        said = ", ".join(f"{pod_class} {word} {count:,}" for (pod_class, word), count in sorted(self.model.items()))
        return [
            "; ".join(f"{count:,} {what}" for what, count in self.counts.items()),
            f"equal to their source: {compared}",
            f"bindings by the model: {said}; {self.agreement:.1%} agree",
            f"differences: {len(self.differences)}",
        ]

    def check(self, what: str, *, holds: bool, **said: object) -> None:
        """Note a difference unless it holds; `what` ends with what is compared."""
        self.compared[what.rpartition(": ")[2]] += 1
        if not holds:
            self.differences.append(f"{what}: {', '.join(f'{key}={value}' for key, value in said.items())}")


def span_us(text: str) -> float:
    """Microseconds of a span as Go writes it."""
    return sum(float(number) * _UNITS_US[unit] for number, unit in re.findall(r"([\d.]+)(h|ms|m|s|µs)", text))


def compare(day: PlayedDay, database: str | None = None) -> Comparison:
    """Compare all of it; database: another one than the recorder's."""
    return _Comparer(day, database or day.database).run()


class _Comparer:
    def __init__(self, day: PlayedDay, database: str) -> None:
        self.day = day
        self.result = Comparison()
        self.seen = day.witness.pods
        self.events = day.cluster.api.list(f"/apis/events.k8s.io/v1/namespaces/{day.namespace}/events")
        self._read(database)

    def _read(self, database: str) -> None:
        store = Store.open(database)
        with store.reading() as connection:

            def rows(table: sa.Table) -> list[Object]:
                return [dict(row) for row in connection.execute(sa.select(table)).mappings()]

            self.pods = {row["uid"]: row for row in rows(schema.pod) if row["namespace"] == self.day.namespace}
            self.phases: dict[str, dict[Step, Object]] = defaultdict(dict)
            for row in rows(schema.phase):
                self.phases[row["pod_uid"]][row["phase"], row["detail"]] = row
            self.decisions = [row for row in rows(schema.decision) if row["pod_uid"] in self.pods]
            self.pulls = {
                (row["pod_uid"], row["image"]): row for row in rows(schema.pull) if row["pod_uid"] in self.pods
            }
            self.preempted = {row["victim_uid"]: row for row in rows(schema.preemption)}
            self.nodes = {row["name"]: row for row in rows(schema.node)}
            self.gaps = rows(schema.gap)
        store.close()

    def run(self) -> Comparison:
        """All comparisons."""
        result, day = self.result, self.day
        for uid in self.seen.keys() | self.pods.keys() | set(day.launched.values()):
            is_there = (uid in self.seen, uid in self.pods)
            result.check(f"{uid}: lost or doubled", holds=all(is_there), seen=is_there[0], stored=is_there[1])
        result.check("no gap is marked", holds=not self.gaps, gaps=self.gaps)
        # A watch may break: it goes on where it stood.
        for name in ("odd_objects", "store_errors"):
            result.check(f"no {name}", holds=day.counters[name] == 0, found=day.counters[name])
        told = self._phases_of_events()
        binds: dict[str, list[Object]] = defaultdict(list)
        for row in self.decisions:
            if row["kind"] == "bind":
                binds[row["pod_uid"]].append(row)
        for uid, seen in self.seen.items():
            if uid in self.pods:
                self._compare_phases(uid, seen, told.get(uid, {}))
                self._compare_end(uid, seen)
                self._compare_binding(uid, seen, binds[uid])
        self._compare_preemptions()
        self._compare_pulls()
        self._compare_nodes()
        kinds = Counter(row["kind"] for row in self.decisions)
        result.counts["pods"] = len(self.pods)
        result.counts["pods that ended"] = sum(row["deleted_us"] is not None for row in self.pods.values())
        for kind in ("bind", "fail", "nominate", "preempt"):
            result.counts[f"decisions of kind {kind}"] = kinds[kind]
        result.counts["pulls, cold"] = sum(not row["warm"] for row in self.pulls.values())
        result.counts["pulls, warm"] = sum(bool(row["warm"]) for row in self.pulls.values())
        result.counts["nodes"] = len(self.nodes)
        return result

    def _phases_of_events(self) -> dict[str, dict[Step, At]]:
        """uid -> phase -> when, as Events tell; the first of each counts."""
        expected: dict[str, dict[Step, At]] = defaultdict(dict)
        self.pulled: list[tuple[At, Object]] = []
        for event in self.events:
            uid, reason = event["regarding"].get("uid", ""), str(event.get("reason"))
            exact = event.get("eventTime")
            at = (moment_us(exact), MICRO_US) if exact else (moment_us(event["deprecatedFirstTimestamp"]), SECOND_US)
            step = {"Scheduled": ("scheduled", ""), "FailedScheduling": ("unschedulable", "")}.get(reason)
            if reason == "Pulling" and (pulling := _PULLING.search(event["note"])):
                step = ("pulling", pulling[1])
            if reason == "Pulled":
                self.pulled.append((at, event))
                found = _PULLED.search(event["note"]) or _PRESENT.search(event["note"])
                step = ("pulled", found[1]) if found else None
            if step is not None:
                expected[uid][step] = min(at, expected[uid].get(step, at))
        return expected

    def _compare_phases(self, uid: str, seen: Seen, events: Mapping[Step, At]) -> None:
        result, stored = self.result, self.phases[uid]
        wanted = {step: (at_us, SECOND_US) for step, at_us in seen.steps.items()} | dict(events)
        for step, told in wanted.items():
            row = stored.get(step)
            found = None if row is None else (row["at_us"], row["resolution_us"])
            holds = found == told
            if step == ("created", "") and found is not None and found[1] < SECOND_US:
                # The watch told of it within the second that the object has.
                holds = found[0] // US * US == told[0]
            result.check(f"{seen.name} {step[1]}: {step[0]}", holds=holds, found=found, told=told)
        more = stored.keys() - wanted.keys() - {("gone", ""), ("nominated", "")}
        result.check(f"{seen.name}: phases that nobody told of", holds=not more, found=more)

    def _compare_end(self, uid: str, seen: Seen) -> None:
        result, row = self.result, self.phases[uid].get(("gone", ""))
        is_gone, ended = seen.gone_seen is not None, self.pods[uid]["deleted_us"] is not None
        result.check(f"{seen.name}: its end", holds=is_gone == ended == (row is not None), seen=is_gone, stored=ended)
        if row is not None and seen.gone_seen is not None:
            apart_us = abs(row["at_us"] - seen.gone_seen * US)
            holds = apart_us <= DELIVERED_US + row["resolution_us"]
            result.check(f"{seen.name}: when it ended", holds=holds, at=row["at_us"], seen=seen.gone_seen)

    def _compare_binding(self, uid: str, seen: Seen, binds: list[Object]) -> None:
        found = [row["node_name"] for row in binds]
        wanted = [seen.node] if seen.node else []
        self.result.check(f"{seen.name}: its binding", holds=found == wanted, found=found, told=wanted)
        at_us = self.phases[uid].get(("scheduled", ""), {}).get("at_us")
        for row in binds:
            holds = row["at_us"] == at_us
            self.result.check(f"{seen.name}: phase and decision", holds=holds, found=row["at_us"], phase=at_us)
            self.result.model[self.pods[uid]["pod_class"], str(row["model"])] += 1

    def _compare_preemptions(self) -> None:
        asked = {(row["pod_uid"], row["message"]) for row in self.decisions if row["kind"] == "preempt"}
        # Two pods may ask for the same room.
        takers: dict[str, set[str]] = defaultdict(set)
        for event in self.events:
            if event.get("reason") == "Preempted":
                (by_uid,) = _UID.findall(event["note"])
                takers[event["regarding"]["uid"]].add(by_uid)
                self.result.check(f"{by_uid}: its pre-emption", holds=(by_uid, event["note"]) in asked)
        for uid, by_uids in takers.items():
            row = self.preempted.get(uid)
            holds = row is not None and row["by_uid"] in by_uids
            self.result.check(f"{uid}: pre-empted", holds=holds, row=row, by=by_uids)

    def _compare_pulls(self) -> None:
        result = self.result
        told: set[tuple[str, str]] = set()
        for _, event in sorted(self.pulled, key=lambda pulled: pulled[0]):
            uid = event["regarding"]["uid"]
            cold, present = _PULLED.search(event["note"]), _PRESENT.search(event["note"])
            image = cold[1] if cold else present[1] if present else ""
            if not image or uid not in self.pods or (uid, image) in told:
                continue
            told.add((uid, image))
            row = self.pulls.get((uid, image), {})
            result.check(f"{uid}: where it pulled", holds=row.get("node_name") == REAL_NODE, row=row)
            if cold is None:
                result.check(f"{uid}: warm", holds=bool(row.get("warm")), row=row)
                continue
            same = (
                bool(row)
                and not row["warm"]
                and abs(row["pull_us"] - span_us(cold[2])) <= 1
                and abs(row["pull_and_wait_us"] - span_us(cold[3])) <= 1
                and row["image_bytes"] == int(cold[4])
            )
            result.check(f"{uid}: cold pull as its kubelet tells", holds=same, row=row, note=event["note"])
        extra = self.pulls.keys() - told
        result.check("pulls that nobody told of", holds=not extra, found=extra)

    def _compare_nodes(self) -> None:
        there = {node["metadata"]["name"] for node in self.day.cluster.api.list("/api/v1/nodes")}
        for name, created_us in self.day.made_nodes.items():
            row = self.nodes.get(name, {})
            holds = row.get("created_us") == created_us and (row["gone_us"] is None) == (name in there)
            self.result.check(f"{name}: a node's life", holds=holds, row=row, own=created_us)
