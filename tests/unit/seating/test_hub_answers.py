"""Whatever the hub answers, and whatever the token's file holds: HubError at most."""

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.seating.bookings import BookingFile
from roost.seating.hub import Hub, HubError, Result
from roost.seating.metrics import SeatingMetrics
from roost.seating.people import MARK_KEY
from roost.seating.service import SeatingTimes, Service
from roost.seating.settings import ReleaseFile

KEYS: Final = (
    "items",
    "_pagination",
    "next",
    "offset",
    "name",
    "servers",
    "users",
    "user_options",
    "started",
    "last_activity",
    "pending",
    "ready",
    "failed",
    MARK_KEY,
    "booking",
    "start",
    "asked",
    "",
)
LEAVES: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None), max_size=4),
    st.sampled_from(["ada", "spawn", "2026-11-24T09:00:00Z", "0001-01-01T00:00:00+14:00"]),
)
ANSWERS: Final = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)
# Of the right shape at the outside.
PAGES: Final = ANSWERS | st.fixed_dictionaries(
    {"items": st.lists(ANSWERS, max_size=3)}, optional={"_pagination": ANSWERS}
)


class Answer(io.BytesIO):
    status = 202


class AnswersAnything(Hub):
    """A hub whose every answer comes from `answer`."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        super().__init__("http://hub:8081/hub/api", Path("/nowhere"))
        self._answer = answer
        self.asked = 0

    def _open(self, method: str, path: str, **_: Any) -> Any:
        self.asked += 1
        if self.asked > 50:
            raise HubError("asked again and again")
        text = json.dumps(self._answer())
        return Answer(f"data: {text}\n".encode() if path.endswith("/progress") else text.encode())


@given(st.data())
def test_any_json_is_an_answer_or_a_hub_error(data: st.DataObject) -> None:
    def hub() -> Hub:
        return AnswersAnything(lambda: data.draw(PAGES))

    for ask in (
        lambda: list(hub().users("active")),
        lambda: hub().user("ada"),
        lambda: hub().group("bio101"),
    ):
        with suppress(HubError):
            ask()
    hub().start(data.draw(st.text(st.characters(codec=None), max_size=4)), {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    entry = {"name": "biology", "people": 20, "start": "2026-11-24T09:00", "timeZone": "UTC"}
    booked = [{**entry, "group": "bio101", "users": ["ada"]}]
    events = {"enabled": True, "configMaps": True, "maxPeople": 500, "booked": booked}
    document = {"placeholders": [{"name": "default"}], "events": events}
    (folder / "release.json").write_text(json.dumps(document))
    return folder


@given(st.data())
def test_no_answer_ends_the_service(folder: Path, data: st.DataObject) -> None:
    now = 1_795_510_800.0 + data.draw(st.sampled_from([-60.0, 60.0, 1201.0]))
    hub = AnswersAnything(lambda: data.draw(PAGES))
    release = ReleaseFile(folder / "release.json", print)
    service = Service(
        hub,
        release,
        BookingFile(None, print),
        SeatingTimes(1200.0, 30.0),
        metrics=SeatingMetrics(Result),
        clock=lambda: now,
    )
    for _ in range(2):
        service.turn()
        for _, _, future in list(service._starts.running.values()):
            future.exception(timeout=10)
    service.readiness()[1].encode()
    service._starts.end()


@given(st.binary(max_size=12), st.sampled_from([b"\n", b" ", b"\0", b"\xff", b"\xc3\xa4", b"\x7f"]))
def test_no_message_quotes_a_token_that_is_none(
    tmp_path_factory: pytest.TempPathFactory, more: bytes, wrong: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "token"
    path.write_bytes(b"s3cr3t" + wrong + b"t0k3n" + more)
    with pytest.raises(HubError) as caught:
        list(Hub("http://127.0.0.1:1/hub/api", path).users())
    assert "found no token" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert "t0k3n" not in str(caught.value)
    assert caught.value.__context__ is None
