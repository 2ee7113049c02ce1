"""Run many replays: each policy with each seed and setting, on processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from roost_core.kube.process import version
from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.simulator.sweep.survey import Trace

# Packages that decide a replay's result; what the generator renders is in a policy's digest.
_DECIDING: Final = ("roost_core", "webhook", "roost", "roost_lab")
# Equal for a sweep's replays with equal results: the policy's digest, what is assumed, and the
# seed.
JobKey = tuple[str, Assumptions, int]


class SweepError(Exception):
    """A sweep can't go on, since a replay failed; the text says which, and why."""


@cache
def code_fingerprint() -> str:
    """A digest of Roost's version and of the code that replays.

    Computed once: what this process has loaded stays the same when files change.
    """
    digest = sha256(version().encode())
    for name in _DECIDING:
        for path in sorted(Path(str(resources.files(name))).rglob("*.py")):
            digest.update(f"\0{path.parent.name}/{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


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

    @property
    def key(self) -> JobKey:
        """Equal for replays with equal results, of one trace."""
        return self.policy.digest, self.assumptions, self.seed

    def __str__(self) -> str:
        setting = "".join(f", {name}={value}" for name, value in self.setting.items())
        return f"policy {self.policy.name}, seed {self.seed}{setting}"


class ReplayEnd(NamedTuple):
    """A replay ended."""

    key: JobKey
    result: RunResult


# What a worker does for a job: a module's function, so that workers can import it.
Work = Callable[[Job], RunResult]
# Where jobs run: all of them, in any order. Raises SweepError; closing the iterator stops those
# that still run.
Spread = Callable[[Sequence[Job], Work], Generator[ReplayEnd, None, None]]


def replay_job(job: Job) -> RunResult:
    """Replay one job's trace under its policy."""
    from roost_lab.simulator.sweep.replay import replay  # noqa: PLC0415 - only workers load the engine

    if job.code != code_fingerprint():
        raise SweepError(
            "Roost's code here differs from the code that the sweep began with: install the same"
            " version everywhere, or start again after a change"
        )
    return replay(
        job.trace.open(job.seed), job.policy, job.assumptions, job.seed, hubs=job.trace.hubs
    )


def make_jobs(
    policies: Sequence[Policy],
    seeds: Iterable[int],
    worlds: Sequence[tuple[Mapping[str, Any], Assumptions]],
    trace: Trace,
) -> list[Job]:
    """Every policy with every world (what differs, assumptions) and seed; all of one seed before
    the next seed.

    Each policy is rendered for its world's minor here, so that faults show before the first replay.
    """
    code = code_fingerprint()
    planned = [
        (policy.in_minor(assumed.minor), setting, assumed)
        for setting, assumed in worlds
        for policy in policies
    ]
    return [
        Job(policy, seed, assumed, trace, setting, code)
        for seed in seeds
        for policy, setting, assumed in planned
    ]


def run_sweep(
    jobs: Sequence[Job],
    spread: Spread,
    *,
    work: Work = replay_job,
    report: Callable[[ReplayEnd], None] = lambda _end: None,
) -> list[RunResult]:
    """One result for each job, in their order. Raises SweepError.

    report: called with the end of every replay.
    """
    results: dict[JobKey, RunResult] = {}
    # Equal values under two names are replayed once.
    different: dict[JobKey, Job] = {}
    for job in jobs:
        different.setdefault(job.key, job)
    ends = spread(list(different.values()), work)
    with closing(ends):
        for end in ends:
            results[end.key] = end.result
            report(end)
    # Under its job's name: the same values may have been replayed under another.
    return [
        replace(results[job.key], policy=job.policy.name, setting=dict(job.setting), seed=job.seed)
        for job in jobs
    ]


# On this machine


def usual_workers() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class LocalProcesses:
    """New processes of this machine, each with one job at a time."""

    number: int

    def __call__(self, jobs: Sequence[Job], work: Work) -> Generator[ReplayEnd, None, None]:
        """Run them all. Raises SweepError where a replay fails, or its process dies."""
        others = multiprocessing.active_children()
        # Spawned, not forked: nothing of this process's threads or terminal comes along.
        # Ctrl-C is left to the parent.
        spawn = multiprocessing.get_context("spawn")
        ignored = (signal.SIGINT, signal.SIG_IGN)
        pool = ProcessPoolExecutor(min(self.number, len(jobs)), spawn, signal.signal, ignored)
        try:
            futures = {pool.submit(run_job, job, work): job.key for job in jobs}
            for future in as_completed(futures):
                yield ReplayEnd(futures[future], future.result())
        except BrokenProcessPool:
            raise SweepError(
                "a process that replayed was ended, mostly because memory ran out: fewer --jobs"
                " need less"
            ) from None
        finally:
            for process in multiprocessing.active_children():
                if process not in others:
                    process.kill()
            pool.shutdown(cancel_futures=True)


def run_job(job: Job, work: Work) -> RunResult:
    """Run one job. Raises SweepError, which names it."""
    try:
        return work(job)
    except Exception as error:  # noqa: BLE001 - the sweep reports it and ends
        raise SweepError(f"{job}: {_why(error)}") from None


def _why(error: Exception) -> str:
    text = str(error) or "no details"
    package = type(error).__module__.partition(".")[0]
    # Roost's own errors are written for people; of others the place helps.
    if package in {"roost", "roost_core", "roost_lab", "generator", "webhook"}:
        return text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {text}{place}; this is a bug in Roost, please report it"
