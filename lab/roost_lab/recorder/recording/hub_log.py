"""Read JupyterHub's log: whose server answered, whose start failed, and when; which servers seating
asked for, which of them were opened, and which it stopped. Pure.

JupyterHub 1 to 6 say it in the same words: base.py of its handlers, user.py, and log.py, which
writes a line for each request; only 6 says "Not starting".
"""

from __future__ import annotations

import re
from hashlib import sha256
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from roost_core.placement.labels import SEATING_SERVICE
from roost_lab.recorder.recording.reading import PodReading, Step, micros
from roost_lab.recorder.store.records import Phase
from roost_lab.units import HOUR_US, US

# The hub's container in zero-to-jupyterhub's pod, and the label `component` of that pod.
HUB: Final = "hub"
# What KubeSpawner writes on users' pods.
USER_ANNOTATION: Final = "hub.jupyter.org/username"
SERVER_ANNOTATION: Final = "hub.jupyter.org/servername"
MILLI_US: Final = 1_000
# Within this time of the request for it a server's pod is created: hooks take their time.
SEATED_US: Final = 120 * US
# The time of a line in a log is when its container's runtime read it: so much later at most.
_SAME_US: Final = US
# Characters of a checkpoint's kind that the schema allows.
_MAX_KIND: Final = 32
# How long after the creation of its pod a hub may tell of a start; and how much their clocks may
# differ.
LONGEST_US: Final = HOUR_US
EARLY_US: Final = 2 * US
# Names of pod and container (`kubectl logs --prefix`, stern), the kubelet's time (`--timestamps`),
# the stream in a kubelet's own file, and JupyterHub's own time, which is the container's local
# time: UTC.
_COLOUR: Final = r"(?:\x1b[\[(][\d;]*[mB])*"
_BEFORE: Final = (
    r"(?:\[?[\w./-]+\]? ){0,2}?(?:(?P<told>\d{4}-\d\d-\d\dT\S+) )?(?:std(?:out|err) [FP] )?"
)
_LINE: Final = re.compile(
    rf"{_BEFORE}{_COLOUR}\[[A-Z] (?P<day>\d{{4}}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d\.\d{{3}}) "
    rf"JupyterHub \w+:\d+\]{_COLOUR} (?P<said>.*)"
)
_ANSWERED: Final = re.compile(r"User (?P<who>.+) took (?P<seconds>\d+\.\d+) seconds to start")
_FAILED: Final = re.compile(
    r"(?:Error starting |Unhandled error starting |Unhandled error waiting for |Not starting"
    r" )(?P<at>.+?)'s server[: ]"
    r"|(?P<late>.+?)'s server (?:failed to start in|never showed up at) |Failed to add (?P<lost>.+)"
    r" to proxy!"
)
# A request: `202 POST /hub/api/users/ada/server (roost-seating@10.0.0.1) 23.10ms`; a redirect has
# its target after the address. No address holds a space.
_REQUEST: Final = re.compile(
    r"(?P<status>\d{3}) (?P<method>[A-Z]+) (?P<uri>\S+)(?: -> (?P<target>\S+))?"
    r" \((?P<by>.+)@[^@]*\) (?P<millis>\d+\.\d+)ms"
)
_SERVER_PATH: Final = re.compile(r".*/hub/api/users/(?P<user>[^/]+)/server")
# The address of a default server; of a named one more follows, as of an application's page.
_OWN_PATH: Final = re.compile(r"(?P<base>.*?)/user/(?P<user>[^/]+)/(?:\?.*)?")
_AUTHORIZE: Final = "/hub/api/oauth2/authorize"
_CLIENT: Final = "jupyterhub-user-"


class HubNews(NamedTuple):
    """What a hub says of one start."""

    when: Step
    # ANSWERED, FAILED, SEATED, OPENED or UNUSED.
    outcome: Phase
    # `user`, or `user:server` of a named server; a failure may leave the server out.
    who: str
    # ANSWERED: how long it took since the user asked. SEATED, UNUSED: how long the hub took for the
    # request. None: not said.
    span_us: int | None = None
    # SEATED: whether the start goes on after the request.
    is_pending: bool = False

    @property
    def asked_us(self) -> int:
        """When the hub was asked, in microseconds, as far as it is said."""
        return self.when.at_us - (self.span_us or 0)

    @property
    def latest_us(self) -> int:
        """SEATED: when the pod was created at the latest."""
        return self.asked_us + SEATED_US if self.is_pending else self.when.at_us

    def may_have_begun(self, asked_us: int) -> bool:
        """SEATED: whether it is the request that a start was asked for by; both times are the
        hub's own.
        """
        return self.asked_us - _SAME_US <= asked_us <= self.when.at_us + _SAME_US

    def is_about(self, server: str) -> bool:
        """Whether it may be about the server of that name in the hub's log."""
        if self.outcome is Phase.FAILED and server.startswith(f"{self.who}:"):
            return True
        return server == self.who


def server_of(pod: PodReading) -> str:
    """What the log of its hub calls a user's server: `user` or `user:server`; "" of a pod that is
    none.
    """
    annotations = pod.state.annotations
    names = [annotations.get(key) for key in (USER_ANNOTATION, SERVER_ANNOTATION)]
    return ":".join(name for name in names if name)


def log_checkpoint(namespace: str) -> str:
    """The kind of a hub log's checkpoint.

    That checkpoint's version is the time (µs) from which the log is read; an empty version: it
    isn't.
    """
    kind = f"log:{namespace}"
    if len(kind) <= _MAX_KIND:
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
    request = _REQUEST.fullmatch(line["said"])
    return None if request is None else _read_request(request, when)


def _read_request(request: re.Match[str], when: Step) -> HubNews | None:
    """What a request says of a start that seating asked for; None: nothing."""
    by = request["by"]
    status = int(request["status"])
    if by == SEATING_SERVICE:
        return _read_seating(request, when, status)
    # Whoever asks for their running server is sent there.
    target = _OWN_PATH.fullmatch(request["target"] or "")
    if target is not None and not target["base"].endswith("/hub") and unquote(target["user"]) == by:
        return HubNews(when, Phase.OPENED, by)
    # A browser that comes to a server is sent to the hub for a token, anew after each start.
    if status < HTTPStatus.BAD_REQUEST and _is_for_token(request["uri"], by):
        return HubNews(when, Phase.OPENED, by)
    return None


def _read_seating(request: re.Match[str], when: Step, status: int) -> HubNews | None:
    path = _SERVER_PATH.fullmatch(request["uri"])
    if path is None:
        return None
    user = unquote(path["user"])
    if user == SEATING_SERVICE:
        # A person of that name, and their own server.
        return None
    span_us = round(float(request["millis"]) * MILLI_US)
    is_done = status < HTTPStatus.MULTIPLE_CHOICES
    # What fails within the request (500) began. What is refused began nothing.
    if request["method"] == "POST" and (is_done or status >= HTTPStatus.INTERNAL_SERVER_ERROR):
        is_pending = status == HTTPStatus.ACCEPTED
        return HubNews(when, Phase.SEATED, user, span_us, is_pending)
    if request["method"] == "DELETE" and is_done:
        return HubNews(when, Phase.UNUSED, user, span_us)
    return None


def _is_for_token(uri: str, user: str) -> bool:
    """Whether a user's browser asks for a token of their own default server."""
    try:
        address = urlsplit(uri)
    except ValueError:
        # Anybody may ask for anything.
        return False
    if not address.path.endswith(_AUTHORIZE):
        return False
    # JupyterHub's versions quote a name in different ways.
    return any(
        unquote(client) == _CLIENT + user for client in parse_qs(address.query).get("client_id", [])
    )
