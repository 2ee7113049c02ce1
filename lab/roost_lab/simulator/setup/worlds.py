"""Worlds that have a name: assumptions that belong together, with what they were fitted to.

`mybinder-2019` is mybinder.org as people felt it in May 2019. Its launch times were published then:
`PUBLISHED`. The usual assumptions say nothing of how long a server takes to answer, and pull images
four times as fast. How the world was fitted, and what it can't reach:
`lab/docs/decisions/0066-the-world-as-it-was-felt.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MYBINDER: Final = "mybinder-2019"
# Name -> assumptions that differ from the usual assumptions.
WORLDS: Final[Mapping[str, Mapping[str, Any]]] = {
    MYBINDER: {"pulls": "slowest", "answer_seconds": 12.0, "answer_sigma": 0.8}
}
# Share of launches -> seconds that they took at most, from the click to the answer [S: binderhub's
# pull request 858, 2019-05-25]. The cluster had zero-to-jupyterhub's user-scheduler, pod priority
# and 25 placeholders [S: mybinder.org-deploy, b8168ef9].
PUBLISHED: Final[Mapping[float, float]] = {0.5: 15.0, 0.9: 60.0, 0.99: 240.0}
