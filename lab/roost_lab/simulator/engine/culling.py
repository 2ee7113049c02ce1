"""When the hub's culler runs: periodically, with one phase for all servers and all policies.

A server whose user has gone stays until the next look, so servers leave in groups. Only lengths that are drawn are
changed so: those that a trace tells hold their culler's looks already.
Source: jupyterhub-idle-culler's `--cull-every`: zero-to-jupyterhub sets 600 s. mybinder.org's servers stop themselves.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roost_lab.traces.chance import Chance


def next_look(moment: float, every_seconds: float, chance: Chance) -> float:
    """The first run at `moment` or later."""
    phase = chance.uniform("culler", "phase") * every_seconds
    return max(moment, phase + ceil((moment - phase) / every_seconds) * every_seconds)
