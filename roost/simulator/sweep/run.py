"""Run many replays: each policy with each seed and setting, on processes of this machine, and keep every result."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections import deque
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from roost.simulator.engine.results import RunResult
from roost.simulator.sweep.result_store import ResultStore, code_fingerprint, result_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from multiprocessing.context import SpawnProcess

    from roost.simulator.setup.assumptions import Assumptions
    from roost.simulator.setup.policy import Policy
    from roost.simulator.sweep.survey import Trace

# A worker tells how far it is at most so often.
TELL_SECONDS: Final = 0.25
# Workers that vanish under one replay before the sweep gives up.
MOST_LOST: Final = 2


class SweepError(Exception):
    """A replay failed; the message says which, and why."""


@dataclass(frozen=True)
class Job:
    """One replay that is to be done."""

    policy: Policy
    seed: int
    assumptions: Assumptions
    trace: Trace
    # What differs from the usual assumptions.
    setting: Mapping[str, Any] = field(default_factory=dict)
    # Of the code that is to replay: a worker with other code refuses.
    code: str = field(default_factory=code_fingerprint)

    @cached_property
    def key(self) -> str:
        """The same for replays that give the same."""
        return result_key(self._parts())

    @property
    def about(self) -> dict[str, Any]:
        """What it is, for people who open a result's file."""
        return {
            "policy": self.policy.name,
            "setting": dict(self.setting),
            "trace": list(self.trace.paths),
        } | self._parts()

    def __str__(self) -> str:
        setting = "".join(f", {name}={value}" for name, value in self.setting.items())
        return f"policy {self.policy.name}, seed {self.seed}{setting}"

    def _parts(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "values": self.policy.digest,
            "assumptions": asdict(self.assumptions),
            "seed": self.seed,
            "fingerprint": self.trace.fingerprint,
        }


class Progress(NamedTuple):
    """A replay is so far: attempts done."""

    key: str
    attempts: int


class ReplayEnd(NamedTuple):
    """A replay ended."""

    key: str
    result: RunResult
    # From an earlier sweep.
    was_kept: bool = False


class ReplayFailure(NamedTuple):
    """A replay ended badly."""

    key: str
    why: str


Event = Progress | ReplayEnd | ReplayFailure


class Work(Protocol):
    """What a worker does for a job; a function of a module, so that workers can import it."""

    def __call__(self, job: Job, on_progress: Callable[[int, float], None] | None, /) -> RunResult:
        """Replay. on_progress: number and moment of the last attempt."""


class Spread(Protocol):
    """Where jobs are done. Closing the iterator ends what still runs."""

    def __call__(self, jobs: Sequence[Job], work: Work, /) -> Iterator[Event]:
        """Do them all, in any order."""


def replay_job(job: Job, on_progress: Callable[[int, float], None] | None) -> RunResult:
    """Replay one job's trace under its policy."""
    from roost.simulator.sweep.replay import replay  # noqa: PLC0415 - the engine is only loaded where it works

    if job.code != code_fingerprint():
        raise SweepError(
            "Roost's code here isn't what the sweep began with: install the same everywhere, or start anew "
            "after a change"
        )
    return replay(job.trace.open(job.seed), job.policy, job.assumptions, job.seed, on_progress)


def make_jobs(
    policies: Sequence[Policy],
    seeds: Iterable[int],
    worlds: Sequence[tuple[Mapping[str, Any], Assumptions]],
    trace: Trace,
    needs: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Job]:
    """Every policy under every seed and world (what differs, assumptions); one seed of all before the next seed.

    needs: policy's name -> assumptions that it changes in every world. Each policy is as in a cluster of its world's
    minor, so that what can't be rendered for one is told here.
    """
    code = code_fingerprint()
    planned = [
        (policy.in_minor(assumptions.minor), setting, replace(assumptions, **(needs or {}).get(policy.name, {})))
        for setting, assumptions in worlds
        for policy in policies
    ]
    return [
        Job(policy, seed, assumptions, trace, setting, code)
        for seed in seeds
        for policy, setting, assumptions in planned
    ]


def run_sweep(
    jobs: Sequence[Job],
    spread: Spread,
    store: ResultStore | None = None,
    *,
    work: Work = replay_job,
    tell: Callable[[Event], None] = lambda _event: None,
) -> list[RunResult]:
    """One result a job, in their order; those that the store has aren't done again. Raises SweepError, StoreError.

    tell: gets all events, those of results in the store first.
    """
    found: dict[str, RunResult] = {}
    wanted: dict[str, Job] = {}
    for job in jobs:
        # Equal values under two names are replayed once.
        if job.key in found or job.key in wanted:
            continue
        kept = store.find(job.key) if store is not None else None
        if kept is None:
            wanted[job.key] = job
        else:
            found[job.key] = kept
            tell(ReplayEnd(job.key, kept, was_kept=True))
    if wanted:
        events = spread(list(wanted.values()), work)
        try:
            for event in events:
                if isinstance(event, ReplayFailure):
                    raise SweepError(f"{wanted[event.key]}: {event.why}")
                if isinstance(event, ReplayEnd):
                    found[event.key] = event.result
                    if store is not None:
                        store.put(event.key, wanted[event.key].about, event.result)
                tell(event)
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                close()
    return [_named(found[job.key], job) for job in jobs]


def _named(result: RunResult, job: Job) -> RunResult:
    """A result under its job's name: the same values may have been replayed under another."""
    return replace(result, policy=job.policy.name, setting=dict(job.setting), seed=job.seed)


# On this machine


def usual_workers() -> int:
    """As many as there are processors for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class LocalProcesses:
    """So many fresh processes, each with one job at a time; a job whose process vanishes is done once more."""

    number: int

    def __call__(self, jobs: Sequence[Job], work: Work) -> Iterator[Event]:
        """Do them all."""
        return _Pool(jobs, work).run(min(self.number, len(jobs)))


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    job: Job | None = None


class _Pool:
    def __init__(self, jobs: Sequence[Job], work: Work) -> None:
        self._waiting = deque(jobs)
        self._work = work
        self._workers: list[_Worker] = []
        # Key -> how often a worker vanished under that job.
        self._lost: dict[str, int] = {}

    def run(self, number: int) -> Iterator[Event]:
        try:
            for _ in range(number):
                self._workers.append(self._start())
            while True:
                busy = {worker.pipe: (worker, worker.job) for worker in self._workers if worker.job is not None}
                if not busy:
                    return
                for pipe in wait(list(busy)):
                    if isinstance(pipe, Connection):
                        yield from self._hear(*busy[pipe])
        finally:
            for worker in self._workers:
                worker.pipe.close()
                worker.process.kill()
            for worker in self._workers:
                worker.process.join()

    def _hear(self, worker: _Worker, job: Job) -> Iterator[Event]:
        try:
            event = worker.pipe.recv()
        except (EOFError, OSError):
            yield from self._replace(worker, job)
            return
        yield read_event(event)
        if event[0] != "progress":
            self._hand_out(worker)

    def _replace(self, worker: _Worker, job: Job) -> Iterator[Event]:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        self._lost[job.key] = self._lost.get(job.key, 0) + 1
        if self._lost[job.key] >= MOST_LOST:
            code = worker.process.exitcode or 0
            how = f"by signal {-code} (9: mostly out of memory; fewer --jobs need less)" if code < 0 else f"with {code}"
            yield ReplayFailure(job.key, f"the process that replayed it ended {how}, {MOST_LOST} times")
        else:
            self._waiting.appendleft(job)
        self._workers.append(self._start())

    def _start(self) -> _Worker:
        # Spawned, not forked: nothing of this process's threads or terminal comes along.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._hand_out(worker)
        return worker

    def _hand_out(self, worker: _Worker) -> None:
        worker.job = self._waiting.popleft() if self._waiting else None
        if worker.job is not None:
            # One that has ended already shows when its pipe is read.
            with contextlib.suppress(OSError):
                worker.pipe.send(worker.job)


def read_event(event: tuple[Any, ...]) -> Event:
    """An event from plain data, as a worker sends it."""
    match event:
        case ("progress", key, attempts):
            return Progress(key, attempts)
        case ("done", key, result):
            return ReplayEnd(key, RunResult.from_json(result))
        case (_, key, why):
            return ReplayFailure(key, why)
    raise AssertionError(event)


def _serve(pipe: Connection, work: Work) -> None:
    """Do jobs until the pipe closes. Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            job: Job = pipe.recv()
            pipe.send(done(job, work, _Teller(job.key, pipe)))
    except (EOFError, OSError):
        return


def done(job: Job, work: Work, on_progress: Callable[[int, float], None] | None) -> tuple[str, str, Any]:
    """Do one job; its outcome as plain data: ("done", key, result) or ("failed", key, why)."""
    try:
        return "done", job.key, work(job, on_progress).to_json()
    except (EOFError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the sweep says it and ends
        return "failed", job.key, _why(error)


def _why(error: Exception) -> str:
    told = str(error) or "no more is known"
    # Faults that we know speak for themselves; of others the place helps.
    if type(error).__module__.partition(".")[0] in {"roost", "roost_core", "generator", "webhook"}:
        return told
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {told}{place}; this is a fault of Roost's, please report it"


class _Teller:
    """Sends progress, but not too often."""

    def __init__(self, key: str, pipe: Connection) -> None:
        self._key, self._pipe = key, pipe
        self._last = 0.0

    def __call__(self, number: int, _moment: float) -> None:
        now = time.monotonic()
        if now - self._last >= TELL_SECONDS:
            self._last = now
            self._pipe.send(("progress", self._key, number))
