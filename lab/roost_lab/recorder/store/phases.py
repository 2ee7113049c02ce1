"""The phases of a start, as reports and the metric roost_start_phase_seconds name them."""

from __future__ import annotations

from typing import Final

# From the click until the server answers, or from the pod's creation until it is ready.
WHOLE: Final = "whole"
# Until the hub creates the pod.
HUB: Final = "hub"
# Until the pod has a node.
NODE: Final = "node"
# The longest pull of one of its images.
PULL: Final = "pull"
# From its binding until its containers run.
CONTAINERS: Final = "containers"
# From when its containers run until it is ready.
READY: Final = "ready"
# From when its containers run, too, until the server answers.
ANSWER: Final = "answer"
# In the order of tables and figures.
PHASES: Final = (WHOLE, HUB, NODE, PULL, CONTAINERS, READY, ANSWER)
