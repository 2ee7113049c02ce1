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

from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.sweep.result_store import ResultStore, code_fingerprint, result_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from multiprocessing.context import SpawnProcess

    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.simulator.sweep.survey import Trace

# Least time between two progress events of a worker.
PROGRESS_SECONDS: Final = 0.25
# Workers that may die during one replay before the sweep fails.
MOST_LOST: Final = 2


class SweepError(Exception):
    """A replay failed; the text says which, and why."""


@dataclass(frozen=True)
class Job:
    """One replay to run."""

    policy: Policy
    seed: int
    assumptions: Assumptions
    trace: Trace
    # What differs from the default assumptions.
    setting: Mapping[str, Any] = field(default_factory=dict)
    # Fingerprint of the code: a worker with other code refuses the job.
    code: str = field(default_factory=code_fingerprint)

    @cached_property
    def key(self) -> str:
        """Equal for replays with equal results."""
        return result_key(self._parts())

    @property
    def about(self) -> dict[str, Any]:
        """What it is, for people who read a result's file."""
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


class ReplayProgress(NamedTuple):
    """How many attempts of a replay are done."""

    key: str
    attempts: int


class ReplayEnd(NamedTuple):
    """A replay ended."""

    key: str
    result: RunResult
    # From an earlier sweep.
    was_kept: bool = False


class ReplayFailure(NamedTuple):
    """A replay failed."""

    key: str
    why: str


Event = ReplayProgress | ReplayEnd | ReplayFailure


class Work(Protocol):
    """What a worker does for a job: a module's function, so that workers can import it."""

    def __call__(self, job: Job, on_progress: Callable[[int, float], None] | None, /) -> RunResult:
        """Replay. on_progress: number and moment of the last attempt."""


class Spread(Protocol):
    """Where jobs run. Closing the iterator stops those that still run."""

    def __call__(self, jobs: Sequence[Job], work: Work, /) -> Iterator[Event]:
        """Run them all, in any order."""


def replay_job(job: Job, on_progress: Callable[[int, float], None] | None) -> RunResult:
    """Replay one job's trace under its policy."""
    from roost_lab.simulator.sweep.replay import replay  # noqa: PLC0415 - only workers load the engine

    if job.code != code_fingerprint():
        raise SweepError(
            "Roost's code here differs from the code that the sweep began with: install the same version everywhere, "
            "or start again after a change"
        )
    return replay(job.trace.open(job.seed), job.policy, job.assumptions, job.seed, on_progress, hubs=job.trace.hubs)


def make_jobs(
    policies: Sequence[Policy],
    seeds: Iterable[int],
    worlds: Sequence[tuple[Mapping[str, Any], Assumptions]],
    trace: Trace,
) -> list[Job]:
    """Every policy with every world (what differs, assumptions) and seed; all of one seed before the next seed.

    Each policy is rendered for its world's minor here, so that faults show before the first replay.
    """
    code = code_fingerprint()
    planned = [
        (policy.in_minor(assumptions.minor), setting, assumptions)
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
    report: Callable[[Event], None] = lambda _event: None,
) -> list[RunResult]:
    """One result for each job, in their order; results in the store are reused. Raises SweepError, StoreError.

    report: called with every event, those of reused results first.
    """
    results: dict[str, RunResult] = {}
    missing: dict[str, Job] = {}
    for job in jobs:
        # Equal values under two names are replayed once.
        if job.key in results or job.key in missing:
            continue
        kept = store.find(job.key) if store is not None else None
        if kept is None:
            missing[job.key] = job
        else:
            results[job.key] = kept
            report(ReplayEnd(job.key, kept, was_kept=True))
    if missing:
        events = spread(list(missing.values()), work)
        try:
            for event in events:
                if isinstance(event, ReplayFailure):
                    raise SweepError(f"{missing[event.key]}: {event.why}")
                if isinstance(event, ReplayEnd):
                    results[event.key] = event.result
                    if store is not None:
                        store.put(event.key, missing[event.key].about, event.result)
                report(event)
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                close()
    return [_named(results[job.key], job) for job in jobs]


def _named(result: RunResult, job: Job) -> RunResult:
    """A result under its job's name: the same values may have been replayed under another."""
    return replace(result, policy=job.policy.name, setting=dict(job.setting), seed=job.seed)


# On this machine


def usual_workers() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class LocalProcesses:
    """New processes, each with one job at a time; a job whose process dies is run once more."""

    number: int

    def __call__(self, jobs: Sequence[Job], work: Work) -> Iterator[Event]:
        """Run them all."""
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
        # Key of a job -> workers that died during it.
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
                        yield from self._receive(*busy[pipe])
        finally:
            for worker in self._workers:
                worker.pipe.close()
                worker.process.kill()
            for worker in self._workers:
                worker.process.join()

    def _receive(self, worker: _Worker, job: Job) -> Iterator[Event]:
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
            # A worker that has died is noticed when its pipe is read.
            with contextlib.suppress(OSError):
                worker.pipe.send(worker.job)


def read_event(event: tuple[Any, ...]) -> Event:
    """An event from plain data, as a worker sends it."""
    match event:
        case ("progress", key, attempts):
            return ReplayProgress(key, attempts)
        case ("done", key, result):
            return ReplayEnd(key, RunResult.from_json(result))
        case (_, key, why):
            return ReplayFailure(key, why)
    raise AssertionError(event)


def _serve(pipe: Connection, work: Work) -> None:
    """Run jobs until the pipe closes. The parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            job: Job = pipe.recv()
            pipe.send(run_job(job, work, _ProgressSender(job.key, pipe)))
    except (EOFError, OSError):
        return


def run_job(job: Job, work: Work, on_progress: Callable[[int, float], None] | None) -> tuple[str, str, Any]:
    """Run one job; its outcome as plain data: ("done", key, result) or ("failed", key, why)."""
    try:
        return "done", job.key, work(job, on_progress).to_json()
    except (EOFError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - the sweep reports it and ends
        return "failed", job.key, _why(error)


def _why(error: Exception) -> str:
    text = str(error) or "no details"
    # Roost's own errors are written for people; of others the place helps.
    if type(error).__module__.partition(".")[0] in {"roost", "roost_core", "roost_lab", "generator", "webhook"}:
        return text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {text}{place}; this is a bug in Roost, please report it"


class _ProgressSender:
    """Sends progress at most every PROGRESS_SECONDS."""

    def __init__(self, key: str, pipe: Connection) -> None:
        self._key, self._pipe = key, pipe
        self._last = 0.0

    def __call__(self, number: int, _moment: float) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_SECONDS:
            self._last = now
            self._pipe.send(("progress", self._key, number))
