"""Replay a trace: the one call into the engine, and the processor time that it takes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from roost_lab.simulator.engine.journal import Journal
from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.pushes import with_pushes


def replay(
    attempts: Iterable[Attempt],
    policy: Policy,
    assumptions: Assumptions,
    seed: int,
    *,
    hubs: Sequence[str] = (),
    journal: Journal | None = None,
) -> RunResult:
    """Play attempts under a policy, and return what was measured.

    attempts: in order of time. hubs: the attempts' namespaces, if there are several; otherwise all
    attempts are of the policy's hub. journal: is told what happens.
    """
    began = time.process_time()
    pushed = with_pushes(attempts, Chance(seed), assumptions.pushes_per_day)
    result = World(policy, assumptions, seed, hubs, journal).play(pushed)
    result.cpu_seconds = time.process_time() - began
    return result
