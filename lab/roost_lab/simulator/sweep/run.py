"""Run many replays: each policy with each seed and world, on processes of this machine."""

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

# Packages whose code decides a replay's result. The generator's isn't among them: what it renders
# is in a policy's digest.
_DECIDING_PACKAGES: Final = ("roost_core", "webhook", "roost", "roost_lab")
# The policy's digest, the assumptions and the seed: of one trace, jobs with equal keys have equal
# results.
JobKey = tuple[str, Assumptions, int]


class SweepError(Exception):
    """A sweep can't go on. The text says why, and which replay failed, if one did."""


@cache
def code_fingerprint() -> str:
    """A digest of Roost's version and of the code that replays, in 16 hexadecimal digits.

    It is computed once: the code that this process has loaded stays the same when files change.
    """
    digest = sha256(version().encode())
    for name in _DECIDING_PACKAGES:
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
    # Assumption -> its value, of those that differ from the usual assumptions.
    setting: Mapping[str, Any] = field(default_factory=dict)
    # Fingerprint of the code: a worker with other code refuses the job.
    code: str = field(default_factory=code_fingerprint)

    @property
    def key(self) -> JobKey:
        """What decides the result, for jobs of one trace."""
        return self.policy.digest, self.assumptions, self.seed

    def __str__(self) -> str:
        setting = "".join(f", {name}={value}" for name, value in self.setting.items())
        return f"policy {self.policy.name}, seed {self.seed}{setting}"


class ReplayEnd(NamedTuple):
    """The end of a replay, with its job's key."""

    key: JobKey
    result: RunResult


# What a worker does for a job. It is a function of a module, so that workers can import it.
Work = Callable[[Job], RunResult]
# Runs jobs, in any order, on this machine or elsewhere. Raises SweepError. Closing the generator
# stops the jobs that still run.
JobRunner = Callable[[Sequence[Job], Work], Generator[ReplayEnd, None, None]]


def replay_job(job: Job) -> RunResult:
    """Replay a job's trace under its policy.

    Raises SweepError where this process has other code than the one that made the job.
    """
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
    """A job for each seed, world and policy, sorted by seed, then by world, then by policy.

    worlds: each as `Job.setting`, and its assumptions. Each policy is rendered here for the minor
    version of its world's Kubernetes, so that faults show before the first replay.
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
    run_jobs: JobRunner,
    *,
    work: Work = replay_job,
    report: Callable[[ReplayEnd], None] = lambda _end: None,
) -> list[RunResult]:
    """The results of the jobs, in their order. Raises SweepError.

    report: called with the end of every replay.
    """
    results: dict[JobKey, RunResult] = {}
    # Of several jobs with equal results, only the first is replayed.
    jobs_to_replay: dict[JobKey, Job] = {}
    for job in jobs:
        jobs_to_replay.setdefault(job.key, job)
    ends = run_jobs(list(jobs_to_replay.values()), work)
    with closing(ends):
        for end in ends:
            results[end.key] = end.result
            report(end)
    # Jobs with equal keys share the first job's result; here each gets its own names.
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
    """Processes of this machine, started for the sweep, each with one job at a time."""

    # The most processes at once.
    number: int

    def __call__(self, jobs: Sequence[Job], work: Work) -> Generator[ReplayEnd, None, None]:
        """Run all jobs; yields the end of each, in any order.

        Raises SweepError where a replay fails, or its process dies.
        """
        others = multiprocessing.active_children()
        pool = ProcessPoolExecutor(
            min(self.number, len(jobs)),
            # Spawned processes get nothing of this process's threads and terminal, unlike forks.
            multiprocessing.get_context("spawn"),
            # They ignore Ctrl-C: this process ends them.
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
        )
        try:
            key_of_future = {pool.submit(run_job, job, work): job.key for job in jobs}
            for future in as_completed(key_of_future):
                yield ReplayEnd(key_of_future[future], future.result())
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
    """Run one job in a worker. Raises SweepError, which names the job."""
    try:
        return work(job)
    except Exception as error:  # noqa: BLE001 - the sweep reports it and ends
        raise SweepError(f"{job}: {_why(error)}") from None


def _why(error: Exception) -> str:
    """Why a replay failed: the text of an error of Roost, or a bug's error with its place."""
    text = str(error) or "no details"
    package = type(error).__module__.partition(".")[0]
    if package in {"roost", "roost_core", "roost_lab", "generator", "webhook"}:
        return text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {text}{place}; this is a bug in Roost, please report it"
