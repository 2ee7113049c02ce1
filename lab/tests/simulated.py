"""Results of replays that never were, and work for sweeps: what a test needs of the simulator
without its engine.
"""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from roost_lab.simulator.engine import results
from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.simulator.sweep.run import Job
from roost_lab.simulator.sweep.survey import Trace
from roost_lab.traces.chance import Chance

TRACE = Trace(("/nowhere/launches.jsonl.gz",), 0.0, "a trace")


@dataclass(frozen=True)
class PolicyStandIn:
    """As much of a policy as a sweep looks at."""

    name: str
    digest: str

    def in_minor(self, minor: int) -> "PolicyStandIn":
        return replace(self, digest=f"{self.digest} in 1.{minor}")


def policy(name: str, digest: str = "") -> Policy:
    return cast("Policy", PolicyStandIn(name, digest or f"values of {name}"))


def job(name: str = "z2jh", seed: int = 1, digest: str = "", **setting: Any) -> Job:
    return Job(policy(name, digest), seed, Assumptions(**setting), TRACE, setting)


def result(
    name: str = "z2jh",
    seed: int = 1,
    *,
    scale: float = 1.0,
    setting: Mapping[str, Any] | None = None,
    launches: int = 2000,
) -> results.RunResult:
    """A replay of `launches` starts, `scale` times as slow and cold as the others; a little
    different by seed.
    """
    chance = Chance(seed)
    shift = 0.95 + 0.1 * chance.uniform("shift", name)
    cold = int(launches * 0.09 * scale * shift)
    waits = {part: Histogram() for part in (*results.PARTS, results.TOTAL)}
    for number in range(launches):
        is_cold = number < cold
        parts = {
            results.QUEUE: chance.uniform(results.QUEUE, number) * 0.1,
            results.NODE_WAIT: 200 * scale if number % 50 == 0 else 0.0,
            results.PULL_WAIT: chance.uniform(results.PULL_WAIT, number) * 30 * scale
            if is_cold
            else 0.0,
            results.PULL: chance.log_normal(results.PULL, number, 25, 0.5) if is_cold else 0.0,
            results.START: 1.35,
        }
        for part, seconds in parts.items():
            waits[part].add(seconds)
        waits[results.TOTAL].add(sum(parts.values()))
    return results.RunResult(
        policy=name,
        seed=seed,
        setting=dict(setting or {}),
        attempts=launches + 200,
        refused_by_repository=190,
        refused_by_total=10,
        admitted=launches,
        started=launches,
        tries=launches + int(9 * scale),
        placed=launches,
        timeouts=int(7 * scale),
        given_up=int(2 * scale),
        cold=cold,
        cold_why={
            results.NOWHERE: cold // 2,
            results.ONLY_FULL: cold // 4,
            results.ELSEWHERE: cold - cold // 2 - cold // 4,
        },
        waits=waits,
        waited_for_node=launches // 50,
        node_hours=1100 / scale * shift,
        peak_nodes=12,
        nodes_created=40,
        placeholder_preemptions=int(120 * scale),
        registry_bytes=cold * 600_000_000,
        bounds={"node_hours": 1059.0, "cold": launches * 0.03, "cold_compulsory": launches * 0.023},
        cpu_seconds=1.0,
    )


SCALES = {"z2jh": 1.0, "roost": 0.5, "spread": 0.8}


def work(job: Job) -> results.RunResult:
    """What a replay of a stand-in would give; a part of a second later."""
    time.sleep(0.02)
    name = job.policy.name
    sessions = {"short": 0.9, "mid": 1.0, "long": 1.3}[job.assumptions.sessions]
    return result(
        name, job.seed, scale=SCALES.get(name, 1.0) * sessions, setting=job.setting, launches=300
    )


def counted_work(job: Job) -> results.RunResult:
    """The same, with a file for each time it was done, in the folder that the policy's digest
    names.
    """
    Path(job.policy.digest, f"{job.policy.name}-{job.seed}-{time.time_ns()}").touch()
    return work(job)


def slow_work(job: Job) -> results.RunResult:
    """Counted work; seeds beyond the second never end."""
    if job.seed > 2:
        time.sleep(600)
    return counted_work(job)


def failing_work(job: Job) -> results.RunResult:
    """Fails as no fault of ours should."""
    nothing: dict[int, results.RunResult] = {}
    return nothing[job.seed]


def dying_work(job: Job) -> results.RunResult:
    """Ends its process at the first try of the second seed; always, for a policy called fatal."""
    done = Path(job.policy.digest, f"{job.seed}-died")
    if job.policy.name == "fatal" or (job.seed == 2 and not done.exists()):
        done.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return work(job)


def slow_start_work(job: Job) -> results.RunResult:
    """The same as `work`, later."""
    time.sleep(0.4)
    return work(job)
