"""Read JupyterHub's log: whose server answered, whose start failed, and when. Pure.

JupyterHub 1 to 6 say it in the same words: base.py of its handlers, and user.py; only 6 says "Not
starting".
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple

from roost_lab.recorder.recording.reading import US, PodReading, Step, micros
from roost_lab.recorder.store.records import Phase

# The hub's container in zero-to-jupyterhub's pod, and the label `component` of that pod.
HUB: Final = "hub"
# What KubeSpawner writes on users' pods.
USER_ANNOTATION: Final = "hub.jupyter.org/username"
SERVER_ANNOTATION: Final = "hub.jupyter.org/servername"
MILLI_US: Final = 1_000
# Characters of a checkpoint's kind that the schema allows.
_MAX_KIND: Final = 32
# How long after the creation of its pod a hub may tell of a start; and how much their clocks may
# differ.
LONGEST_US: Final = 3600 * US
EARLY_US: Final = 2 * US
# Names of pod and container (`kubectl logs --prefix`, stern), the kubelet's time (`--timestamps`),
# the stream in a kubelet's own file, and JupyterHub's own time, which is the container's local
# time: UTC.
_COLOUR: Final = r"(?:\x1b[\[(][\d;]*[mB])*"
_LINE: Final = re.compile(
    r"(?:\[?[\w./-]+\]? ){0,2}?(?:(?P<told>\d{4}-\d\d-\d\dT\S+) )?(?:std(?:out|err) [FP] )?"
    rf"{_COLOUR}\[[A-Z] (?P<day>\d{{4}}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d\.\d{{3}}) "
    rf"JupyterHub \w+:\d+\]{_COLOUR} (?P<said>.*)"
)
_ANSWERED: Final = re.compile(r"User (?P<who>.+) took (?P<seconds>\d+\.\d+) seconds to start")
_FAILED: Final = re.compile(
    r"(?:Error starting |Unhandled error starting |Unhandled error waiting for |Not starting"
    r" )(?P<at>.+?)'s server[: ]"
    r"|(?P<late>.+?)'s server (?:failed to start in|never showed up at) |Failed to add (?P<lost>.+)"
    r" to proxy!"
)


class HubNews(NamedTuple):
    """What a hub says of one start."""

    when: Step
    # ANSWERED or FAILED.
    outcome: Phase
    # `user`, or `user:server` of a named server; a failure may leave the server out.
    who: str
    # How long it took since the user asked; None: not said.
    span_us: int | None = None

    def is_about(self, server: str) -> bool:
        """Whether it may be about the server of that name in the hub's log."""
        return server == self.who or (
            self.outcome is Phase.FAILED and server.startswith(f"{self.who}:")
        )


def server_of(pod: PodReading) -> str:
    """What the log of its hub calls a user's server: `user` or `user:server`; "" of a pod that is
    none.
    """
    annotations = pod.state.annotations
    return ":".join(
        filter(None, (annotations.get(USER_ANNOTATION), annotations.get(SERVER_ANNOTATION)))
    )


def log_checkpoint(namespace: str) -> str:
    """The kind of a hub log's checkpoint.

    That checkpoint's version is the time (µs) from which the log is read; an empty version: it
    isn't.
    """
    if len(kind := f"log:{namespace}") <= _MAX_KIND:
        return kind
    # Long names with the same beginning stay different.
    return f"{kind[: _MAX_KIND - 9]}-{sha256(namespace.encode()).hexdigest()[:8]}"


def is_hub_line(text: str) -> bool:
    """Whether it is a line of JupyterHub's own format; those that follow one, as tracebacks do, are
    not.
    """
    return _LINE.match(text) is not None


def read_hub_line(text: str) -> HubNews | None:
    """What a line of the log says of a start; None: nothing."""
    line = _LINE.match(text)
    if line is None:
        return None
    answered = _ANSWERED.fullmatch(line["said"])
    failed = _FAILED.match(line["said"])
    at_us = micros(line["told"] or f"{line['day']}T{line['time']}Z")
    if at_us is None:
        return None
    when = Step(at_us, MILLI_US)
    if answered is not None:
        return HubNews(
            when, Phase.ANSWERED, answered["who"], round(float(answered["seconds"]) * US)
        )
    if failed is not None:
        return HubNews(when, Phase.FAILED, failed["at"] or failed["late"] or failed["lost"])
    return None
