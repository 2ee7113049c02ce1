"""Compare what the recorder stored of a played day with what the test knows: nothing lost, no moment that differs.

Three sources stand against each row: what the API server tells (a watch of the test's own, and its Events: equal, to
the resolution of each), when the API server did it (its audit log: between the request and its answer), and what the
test did itself (its own clock). Pulls stand against the registry's log, too.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Verdict
from tests.e2e.played_day import PULL_BYTES_PER_SECOND, REAL_NODE, US, moment_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.e2e.played_day import PlayedDay, Seen

Object = dict[str, Any]
Span = tuple[int, int]
Step = tuple[str, str]
SECOND_US, MICRO_US = US, 1
# From the API server's answer to the moment that a watch tells, on a machine that does other things, too.
DELIVERED_US: Final = 20 * US
# Between a kubelet's word that it pulls and the beginning of its clock for that pull.
KUBELET_US: Final = US
# A throttle lets so much through at once.
THROTTLE_SLACK: Final = 0.9
_PULLED: Final = re.compile(
    r'Successfully pulled image "([^"]+)" in (\S+) \((\S+) including waiting\)\. Image size: (\d+) bytes'
)
_PRESENT: Final = re.compile(r'image "([^"]+)" already present on machine')
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_UNITS_US: Final = {"h": 3600e6, "m": 60e6, "s": 1e6, "ms": 1e3, "µs": 1.0}


@dataclass
class Audit:
    """When the API server did what: between two moments (µs)."""

    # Of each name, its pods one after the other.
    created: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    bound: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    deleted: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    # Name of an Event -> when it was asked to be stored.
    events: dict[str, int] = field(default_factory=dict)


@dataclass
class Comparison:
    """What was found. `differences` should be empty."""

    differences: list[str] = field(default_factory=list)
    # Phase -> how many were compared, by resolution in µs.
    compared: Counter[tuple[str, int]] = field(default_factory=Counter)
    # What was held against the test's own clock, the audit log, the registry.
    held: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    # Pod class and the model's word.
    model: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Seconds between the test's own clock and the record, by what.
    apart: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def agreement(self) -> float:
        """The share of bindings whose node the model names, too."""
        agrees = sum(count for (_, word), count in self.model.items() if word == Verdict.AGREES)
        return agrees / max(1, sum(self.model.values()))

    def lines(self) -> list[str]:
        """All of it, to be read."""
        compared = ", ".join(
            f"{phase} {count:,} ({'µs' if resolution_us == 1 else 's'})"
            for (phase, resolution_us), count in sorted(self.compared.items())
        )
        lines = [
            "; ".join(f"{count:,} {what}" for what, count in self.counts.items()),
            f"phases equal to their source: {compared}",
            "held against: " + ", ".join(f"{what} {count:,}" for what, count in sorted(self.held.items())),
        ]
        for what, seconds in sorted(self.apart.items()):
            found = sorted(seconds)
            half, most, last = (found[min(len(found) - 1, int(share * len(found)))] for share in (0.5, 0.99, 1.0))
            lines.append(f"{what}: median {1000 * half:.1f} ms, p99 {1000 * most:.0f} ms, most {1000 * last:.0f} ms")
        words: dict[str, Counter[str]] = defaultdict(Counter)
        for (pod_class, word), count in self.model.items():
            words[pod_class][word] += count
        words["all"] = sum(words.values(), Counter())
        for pod_class, found_words in words.items():
            total = found_words.total()
            said = ", ".join(f"{word} {count / total:.1%}" for word, count in sorted(found_words.items()))
            lines.append(f"model, {pod_class or 'no class'}: {said} of {total:,} bindings")
        lines.append(f"differences: {len(self.differences)}")
        return lines

    def check(self, what: str, *, holds: bool, **said: object) -> None:
        """Note a difference unless it holds."""
        if not holds:
            self.differences.append(f"{what}: {', '.join(f'{key}={value}' for key, value in said.items())}")

    def between(self, what: str, at_us: int, span: Span, resolution_us: int, *, slack_us: int = 0) -> None:
        """A moment that lies in a span, as far as its resolution tells."""
        first, last = span[0] // resolution_us * resolution_us, span[1] + slack_us
        self.check(what, holds=first <= at_us <= last, at=at_us, first=span[0], last=span[1])
        self.held[what.partition(":")[0]] += 1


def read_audit(day: PlayedDay) -> Audit:
    """The audit log of the day's namespace."""
    audit = Audit()
    with day.audit_path.open() as lines:
        for line in lines:
            if day.namespace not in line:
                continue
            entry = json.loads(line)
            about = entry.get("objectRef", {})
            if about.get("namespace") != day.namespace or entry.get("responseStatus", {}).get("code", 0) >= 300:
                continue
            span = (moment_us(entry["requestReceivedTimestamp"]), moment_us(entry["stageTimestamp"]))
            what = (about["resource"], about.get("subresource", ""), entry["verb"])
            if what == ("events", "", "create"):
                audit.events[about["name"]] = span[0]
            elif what == ("pods", "", "create"):
                audit.created[about["name"]].append(span)
            elif what == ("pods", "binding", "create"):
                audit.bound[about["name"]].append(span)
            elif what == ("pods", "", "delete"):
                audit.deleted[about["name"]].append(span)
    for found in (audit.created, audit.bound, audit.deleted):
        for spans in found.values():
            spans.sort()
    return audit


def span_us(text: str) -> float:
    """Microseconds of a span as Go writes it."""
    return sum(float(number) * _UNITS_US[unit] for number, unit in re.findall(r"([\d.]+)(h|ms|m|s|µs)", text))


def compare(day: PlayedDay, database: str | None = None) -> Comparison:
    """Compare all of it; database: another one than the recorder's."""
    return _Comparer(day, database or day.database).run()


class _Comparer:
    def __init__(self, day: PlayedDay, database: str) -> None:
        self.day = day
        self.database = database
        self.result = Comparison()
        self.audit = read_audit(day)
        api = day.cluster.api
        path = f"/apis/events.k8s.io/v1/namespaces/{day.namespace}/events"
        self.events = api.list(path)
        self.seen = day.witness.pods
        self._read_database()
        # uid -> (its creation, its binding, its deletions) by the audit log.
        self.lives = dict(self._lives())

    def _read_database(self) -> None:
        store = Store.open(self.database)
        with store.reading() as connection:

            def rows(query: sa.Select[Any]) -> list[Object]:
                return [dict(row) for row in connection.execute(query).mappings()]

            here = sa.select(schema.pod.c.uid).where(schema.pod.c.namespace == self.day.namespace)
            self.pods = {
                row["uid"]: row for row in rows(sa.select(schema.pod)) if row["namespace"] == self.day.namespace
            }
            self.phases: dict[str, dict[Step, Object]] = defaultdict(dict)
            for row in rows(sa.select(schema.phase).where(schema.phase.c.pod_uid.in_(here))):
                self.phases[row["pod_uid"]][row["phase"], row["detail"]] = row
            self.decisions = rows(sa.select(schema.decision).where(schema.decision.c.pod_uid.in_(here)))
            self.pulls = {
                (row["pod_uid"], row["image"]): row
                for row in rows(sa.select(schema.pull).where(schema.pull.c.pod_uid.in_(here)))
            }
            self.preempted = {row["victim_uid"]: row for row in rows(sa.select(schema.preemption))}
            self.nodes = {row["name"]: row for row in rows(sa.select(schema.node))}
            self.gaps = rows(sa.select(schema.gap))
            count = sa.select(sa.func.coalesce(sa.func.sum(schema.candidates.c.number), 0))
            self.candidates = int(connection.execute(count).scalar_one())
        store.close()

    def _lives(self) -> Iterable[tuple[str, tuple[Span, Span | None, Sequence[Span]]]]:
        """Pods of one name come one after the other: what was done to it belongs to the last one made before."""
        by_name: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
        for uid, seen in self.seen.items():
            by_name[seen.name].append((seen.created_us, seen.first_seen, uid))
        for name, pods in by_name.items():
            created = self.audit.created[name]
            if len(created) != len(pods):
                self.result.differences.append(f"{name}: created {len(created)} times, seen {len(pods)} times")
                continue
            ends = [*(span[0] for span in created[1:]), 2**62]
            for span, end, (_, _, uid) in zip(created, ends, sorted(pods), strict=True):
                bound = [one for one in self.audit.bound.get(name, ()) if span[0] <= one[0] < end]
                deleted = [one for one in self.audit.deleted.get(name, ()) if span[0] <= one[0] < end]
                self.result.check(f"{name}: bound once", holds=len(bound) <= 1, found=bound)
                yield uid, (span, bound[0] if bound else None, deleted)

    def run(self) -> Comparison:
        """All comparisons."""
        result = self.result
        self._compare_what_is_there()
        expected = self._phases_of_events()
        for uid, seen in self.seen.items():
            if uid in self.pods and uid in self.lives:
                self._compare_phases(uid, seen, expected.get(uid, {}))
                self._compare_end(uid, seen)
        self._compare_bindings()
        self._compare_own_clock()
        self._compare_preemptions()
        self._compare_pulls()
        self._compare_nodes()
        kinds = Counter(row["kind"] for row in self.decisions)
        result.counts["pods"] = len(self.pods)
        result.counts["pods that ended"] = sum(row["deleted_us"] is not None for row in self.pods.values())
        for kind in ("bind", "fail", "nominate", "preempt"):
            result.counts[f"decisions of kind {kind}"] = kinds[kind]
        result.counts["candidates"] = self.candidates
        result.counts["pulls, cold"] = sum(not row["warm"] for row in self.pulls.values())
        result.counts["pulls, warm"] = sum(bool(row["warm"]) for row in self.pulls.values())
        result.counts["nodes"] = len(self.nodes)
        return result

    def _compare_what_is_there(self) -> None:
        result = self.result
        made = {name: len(spans) for name, spans in self.audit.created.items()}
        stored = Counter(row["name"] for row in self.pods.values())
        for name in sorted(made.keys() | stored.keys()):
            result.check(f"{name}: lost or doubled", holds=made.get(name, 0) == stored[name], made=made.get(name, 0))
        result.check("no gap is marked", holds=not self.gaps, gaps=self.gaps)
        # A watch may break: it goes on where it stood.
        for name in ("odd_objects", "store_errors"):
            result.check(f"no {name}", holds=self.day.counters[name] == 0, found=self.day.counters[name])

    # Phases

    def _phases_of_events(self) -> dict[str, dict[Step, tuple[int, int]]]:
        """uid -> phase -> (µs, resolution), as Events tell; also holds each against the audit log."""
        expected: dict[str, dict[Step, tuple[int, int]]] = defaultdict(dict)
        self.pulled: list[Object] = []
        self.pulling: dict[tuple[str, str], int] = {}
        for event in self.events:
            uid, reason = event["regarding"].get("uid", ""), event.get("reason")
            exact = event.get("eventTime")
            at = (moment_us(exact), MICRO_US) if exact else (moment_us(event["deprecatedFirstTimestamp"]), SECOND_US)
            told_us = self.audit.events.get(event["metadata"]["name"])
            if reason == "Pulling" and told_us is not None:
                image = re.findall(r'"([^"]+)"', event["note"])[0]
                self.pulling.setdefault((uid, image), told_us)
            step = {"Scheduled": ("scheduled", ""), "FailedScheduling": ("unschedulable", "")}.get(str(reason))
            if reason == "Pulled":
                self.pulled.append({**event, "at": at, "told_us": told_us})
                found = _PULLED.search(event["note"]) or _PRESENT.search(event["note"])
                step = ("pulled", found[1]) if found else None
            if step is None or uid not in self.lives:
                continue
            before = expected[uid].get(step)
            if before is None or at[0] < before[0]:
                expected[uid][step] = at
            if told_us is not None:
                first = self.lives[uid][1] if step[0] != "unschedulable" else self.lives[uid][0]
                if first is not None:
                    self.result.between(f"{step[0]} by the audit log", at[0], (first[0], told_us), at[1])
        return expected

    def _compare_phases(self, uid: str, seen: Seen, events: Mapping[Step, tuple[int, int]]) -> None:
        result, stored = self.result, self.phases[uid]
        wanted: dict[Step, tuple[int, int]] = {step: (at_us, SECOND_US) for step, at_us in seen.steps.items()}
        wanted |= events
        for step, (at_us, resolution_us) in wanted.items():
            row = stored.get(step)
            found = None if row is None else (row["at_us"], row["resolution_us"])
            phase = step[0]
            result.check(
                f"{seen.name} {phase} {step[1]}", holds=found == (at_us, resolution_us), found=found, told=at_us
            )
            result.compared[phase, resolution_us] += 1
        more = stored.keys() - wanted.keys() - {("gone", ""), ("nominated", "")}
        result.check(f"{seen.name}: phases that nobody told of", holds=not more, found=more)
        created, bound, deleted = self.lives[uid]
        result.between("created by the audit log", seen.steps["created", ""], created, SECOND_US)
        if bound is not None and ("scheduled", "") in seen.steps:
            result.between("condition of binding by the audit log", seen.steps["scheduled", ""], bound, SECOND_US)
        if ("terminating", "") in seen.steps and deleted:
            span = (deleted[0][0], deleted[-1][1])
            result.between("terminating by the audit log", seen.steps["terminating", ""], span, SECOND_US)

    def _compare_end(self, uid: str, seen: Seen) -> None:
        result, row = self.result, self.phases[uid].get(("gone", ""))
        is_gone = seen.gone_seen is not None
        ended = self.pods[uid]["deleted_us"] is not None
        result.check(f"{seen.name}: its end", holds=is_gone == ended == (row is not None), seen=is_gone, stored=ended)
        deleted = self.lives[uid][2]
        if row is None or seen.gone_seen is None or not deleted:
            return
        # Of two that delete it (two pods that pre-empt, say) either may have ended it.
        holds = any(
            first <= row["at_us"] and row["at_us"] - row["resolution_us"] <= last + DELIVERED_US
            for first, last in deleted
        )
        result.check(f"{seen.name}: gone", holds=holds, at=row["at_us"], requests=deleted)
        result.held["gone by the audit log"] += 1
        result.apart["gone, told to the recorder and to the test"].append(abs(row["at_us"] / US - seen.gone_seen))

    def _compare_bindings(self) -> None:
        result = self.result
        binds = {row["pod_uid"]: row for row in self.decisions if row["kind"] == "bind"}
        for uid, (_, bound, _) in self.lives.items():
            seen, row = self.seen[uid], binds.get(uid)
            result.check(f"{seen.name}: its binding", holds=(bound is None) == (row is None), bound=bound)
            if row is None or bound is None:
                continue
            result.check(f"{seen.name}: its node", holds=row["node_name"] == seen.node, found=row["node_name"])
            phase = self.phases[uid].get(("scheduled", ""), {})
            result.check(
                f"{seen.name}: phase and decision", holds=row["at_us"] == phase.get("at_us"), found=row["at_us"]
            )
            result.model[self.pods[uid]["pod_class"], str(row["model"])] += 1
            if seen.bound_seen is not None and row["resolution_us"] == MICRO_US:
                result.apart["bound, by the scheduler and as seen by the test"].append(
                    abs(row["at_us"] / US - seen.bound_seen)
                )

    def _compare_own_clock(self) -> None:
        """What the test did itself: creations, deletions, and starts on nodes whose pods it keeps."""
        result = self.result
        for name, notes in self.day.notes.items():
            seen = self.seen.get(notes.uid)
            if seen is None:
                result.differences.append(f"{name}: never seen")
                continue
            stored = self.phases[notes.uid]
            if ("created", "") not in stored:
                continue
            before, after = (round(one * US) for one in notes.create)
            if before:
                result.between(
                    "created by the test's clock", stored["created", ""]["at_us"], (before, after), SECOND_US
                )
            if notes.delete is not None and ("terminating", "") in stored:
                span = (round(notes.delete[0] * US), round(notes.delete[1] * US))
                at_us = stored["terminating", ""]["at_us"]
                # Its node may have gone first, and the pod with it.
                if self.lives[notes.uid][2] and self.lives[notes.uid][2][0][0] >= span[0]:
                    result.between("terminating by the test's clock", at_us, span, SECOND_US)
        for uid, at in self.day.keeper.started_at.items():
            stored = self.phases.get(uid, {})
            for (phase, _), row in stored.items():
                if phase in ("accepted", "initialized", "started", "ready"):
                    wanted = int(at) * US
                    result.check(
                        f"{uid} {phase} by the test", holds=row["at_us"] == wanted, at=row["at_us"], own=wanted
                    )
                    result.held["starts by the test's clock"] += 1

    def _compare_preemptions(self) -> None:
        result = self.result
        asked = {(row["pod_uid"], row["message"]) for row in self.decisions if row["kind"] == "preempt"}
        # Two pods may ask for the same room.
        takers: dict[str, set[str]] = defaultdict(set)
        for event in self.events:
            if event.get("reason") == "Preempted":
                (by_uid,) = _UID.findall(event["note"])
                uid = event["regarding"]["uid"]
                takers[uid].add(by_uid)
                result.check(f"{uid}: a decision", holds=(by_uid, event["note"]) in asked, by=by_uid)
                result.held["pre-emptions by Events"] += 1
        for uid, by_uids in takers.items():
            row = self.preempted.get(uid)
            result.check(f"{uid}: pre-empted", holds=row is not None and row["by_uid"] in by_uids, row=row, by=by_uids)

    # Pulls

    def _compare_pulls(self) -> None:
        result = self.result
        told: set[tuple[str, str]] = set()
        cold: dict[str, list[tuple[float, float, Object]]] = defaultdict(list)
        for event in sorted(self.pulled, key=lambda event: event["at"][0]):
            uid = event["regarding"]["uid"]
            found, present = _PULLED.search(event["note"]), _PRESENT.search(event["note"])
            image = found[1] if found else present[1] if present else ""
            if not image or uid not in self.pods or (uid, image) in told:
                continue
            told.add((uid, image))
            row = self.pulls.get((uid, image))
            if row is None:
                result.differences.append(f"{uid}: pull of {image} is lost")
                continue
            result.check(f"{uid}: pull", holds=row["node_name"] == REAL_NODE, node=row["node_name"])
            if found is None:
                result.check(f"{uid}: warm", holds=bool(row["warm"]), row=row)
                continue
            pull_us, whole_us, size = span_us(found[2]), span_us(found[3]), int(found[4])
            same = (
                not row["warm"]
                and abs(row["pull_us"] - pull_us) <= 1
                and abs(row["pull_and_wait_us"] - whole_us) <= 1
                and row["image_bytes"] == size
            )
            result.check(f"{uid}: cold pull as its kubelet tells", holds=same, row=row, note=event["note"])
            result.held["pulls by the kubelet's words"] += 1
            cold[image].append((pull_us, whole_us, {**event, "row": row, "uid": uid}))
        extra = self.pulls.keys() - told
        result.check("pulls that nobody told of", holds=not extra, found=extra)
        self._compare_with_registry(cold)

    def _compare_with_registry(self, cold: Mapping[str, list[tuple[float, float, Object]]]) -> None:
        """The node has no image at first and never loses one: the first pull of each moves what it lacks."""
        result, day = self.result, self.day
        transfers: list[tuple[int, int, str]] = []
        shared: dict[str, int] = {}
        for image, pulls in cold.items():
            repository = image.partition("/")[2].rpartition(":")[0]
            asked = [one for one in day.registry.requests if one.path.startswith(f"/v2/{repository}/")]
            blobs = [one for one in asked if "/blobs/" in one.path and one.bytes_served]
            begin_us, end_us = (
                round(min(one.moment for one in blobs) * US),
                round(max(one.ended for one in blobs) * US),
            )
            transfers.append((begin_us, end_us, image))
            pushed = day.images[image]
            moved = day.registry.blob_bytes[repository]
            shared[image] = pushed.size_bytes - moved
            # A kubelet tells the image's size: layers that the node had already and the manifest count, too.
            manifest = max(one.bytes_served for one in asked if "/manifests/" in one.path)
            for _, _, event in pulls:
                size = event["row"]["image_bytes"]
                result.check(f"{image}: bytes", holds=size == pushed.size_bytes + manifest, told=size, pushed=pushed)
                result.held["pulled bytes by the registry's log"] += 1
            lasted_us = end_us - begin_us
            least_us = THROTTLE_SLACK * moved / PULL_BYTES_PER_SECOND * US
            longest = max(pull[0] for pull in pulls)
            result.check(
                f"{image}: pull time", holds=longest >= max(lasted_us, least_us), told=longest, least=lasted_us
            )
            result.held["pull times by the registry's log"] += 1
            result.apart["pull, by the kubelet and by the registry"].append((longest - lasted_us) / US)
        # The layer with the program is the same in all of them: it came with the first one, and never again. The first
        # one isn't told of when its pod went before it was there.
        sizes = Counter(shared.values())
        result.check("each layer moved once", holds=sizes[0] <= 1 and len(sizes.keys() - {0}) <= 1, shared=shared)
        self._compare_waits(cold, sorted(transfers))

    def _compare_waits(
        self, cold: Mapping[str, list[tuple[float, float, Object]]], transfers: Sequence[tuple[int, int, str]]
    ) -> None:
        """A kubelet pulls one image after the other: a wait lasts until the transfers before its own are over."""
        result = self.result
        for (_, end_us, _), (begin_us, _, image) in itertools.pairwise(transfers):
            result.check(f"{image}: pulled alone", holds=end_us <= begin_us, before=end_us, begin=begin_us)
        for number, (begin_us, _, image) in enumerate(transfers):
            pull_us, whole_us, event = max(cold[image], key=lambda pull: pull[0])
            bound = self.lives[event["uid"]][1]
            queued_us = self.pulling.get((event["uid"], image))
            if bound is None or queued_us is None or event["told_us"] is None:
                continue
            wait_us = whole_us - pull_us
            before_us = transfers[number - 1][1] if number else 0
            least_us, most_us = max(0, before_us - queued_us - KUBELET_US), begin_us - bound[0]
            result.check(
                f"{image}: wait", holds=least_us <= wait_us <= most_us, wait=wait_us, least=least_us, most=most_us
            )
            holds = whole_us <= event["told_us"] - bound[0]
            result.check(f"{image}: pull and wait", holds=holds, told=whole_us, most=event["told_us"] - bound[0])
            result.held["waits by the registry's log"] += 1
            result.apart["wait for other pulls, as told"].append(wait_us / US)

    def _compare_nodes(self) -> None:
        result = self.result
        there = {node["metadata"]["name"] for node in self.day.cluster.api.list("/api/v1/nodes")}
        for name, created_us in self.day.made_nodes.items():
            row = self.nodes.get(name)
            if row is None:
                result.differences.append(f"node {name} is lost")
                continue
            result.check(f"node {name}", holds=row["created_us"] == created_us, at=row["created_us"], own=created_us)
            result.check(
                f"node {name}: its end", holds=(row["gone_us"] is None) == (name in there), gone=row["gone_us"]
            )
            result.held["nodes by the test's notes"] += 1
