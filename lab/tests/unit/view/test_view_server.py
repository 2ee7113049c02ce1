"""The page of `roost view` over HTTP: who gets an answer, and what is refused."""

import re
from importlib import resources
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from lab.tests.moments import BEGIN, HOUR
from lab.tests.recorded import empty_store, pod_record, story_records
from lab.tests.told import cases
from roost.__main__ import main
from roost_core.http.server import bind
from roost_lab.commands.view import names_of
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.view import reading
from roost_lab.view.moment import ClusterMoment
from roost_lab.view.reading import RecordSource
from roost_lab.view.server import OWN_HEADER, make_app

TOKEN = "token"
OWN = {OWN_HEADER: "1"}
# The header's key in WSGI.
OWN_KEY = f"HTTP_{OWN_HEADER.upper().replace('-', '_')}"
ASKED = ("/api/records", "/api/moment", "/api/story", "/api/why?uid=p")
ATTACK = "<script>alert(1)</script>"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = empty_store(tmp_path)
    store.write(story_records(ATTACK), {"pods": ("1", BEGIN + 3 * HOUR)})
    return store


def opened(
    *stores: Store, names: tuple[str, ...] = ("",), now_us: int = BEGIN + 3 * HOUR
) -> FlaskClient:
    """The page of somebody who has opened the printed address."""
    sources = [RecordSource(store, now_us=lambda: now_us) for store in stores]
    client = make_app(sources, TOKEN, names=names).test_client()
    assert client.get(f"/?token={TOKEN}").status_code == 302
    client.environ_base[OWN_KEY] = "1"
    return client


@pytest.fixture
def viewer(store: Store) -> FlaskClient:
    return opened(store)


@pytest.mark.parametrize("path", ["/", "/view.js", *ASKED, "/?token=wrong", "/?token=%C3%A9"])
def test_nobody_gets_an_answer_without_the_token(store: Store, path: str) -> None:
    answer = make_app([RecordSource(store)], TOKEN).test_client().get(path, headers=OWN)
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert list(answer.get_json()) == ["error"]


@pytest.mark.parametrize("path", [*ASKED, f"/api/moment?at={BEGIN}"])
def test_a_page_from_elsewhere_gets_no_answer_though_it_has_the_cookie(
    viewer: FlaskClient, path: str
) -> None:
    assert viewer.get(path).status_code == 200
    del viewer.environ_base[OWN_KEY]
    refused = viewer.get(path, headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403
    assert refused.get_json() == {
        "error": f"only the page of `roost view` may ask: no header {OWN_HEADER}"
    }
    # A browser asks before it sends such a header for another page, and gets no leave.
    leave = {"Origin": "http://127.0.0.1:1", "Access-Control-Request-Method": "GET"}
    asked = viewer.options(path, headers={**leave, "Access-Control-Request-Headers": OWN_HEADER})
    assert not any(name.startswith("Access-Control") for name, _ in asked.headers)


def test_the_token_becomes_a_cookie_that_pages_cannot_read(store: Store) -> None:
    answer = make_app([RecordSource(store)], TOKEN).test_client().get(f"/?token={TOKEN}")
    assert answer.headers["Location"] == "/"
    assert {"HttpOnly", "SameSite=Lax"} <= set(answer.headers["Set-Cookie"].split("; "))


@pytest.mark.parametrize("path", ["/", "/page.css", "/view.css", "/view.js"])
def test_the_page_and_its_files_load_nothing_from_elsewhere(viewer: FlaskClient, path: str) -> None:
    answer = viewer.get(path)
    assert answer.status_code == 200
    assert not re.search(r"https?://|\bimport\b", answer.get_data(as_text=True))
    assert "default-src 'none'; script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_script_never_makes_html_of_texts() -> None:
    script = (resources.files("roost_lab.pages") / "view.js").read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\.style\.cssText", script
    )


def test_a_moment_and_a_why_are_json(viewer: FlaskClient) -> None:
    moment = viewer.get(f"/api/moment?at={BEGIN + HOUR}")
    document = moment.get_json()
    assert (document["at"], document["begin"], document["end"]) == (
        BEGIN + HOUR,
        BEGIN,
        BEGIN + 3 * HOUR + 1,
    )
    assert [pod["uid"] for node in document["nodes"] for pod in node["pods"]] == ["p"]
    why = viewer.get("/api/why?uid=p")
    assert "Where it went: node n" in why.get_json()["text"]
    # A browser would show it as text even if it were opened by itself.
    assert [moment.mimetype, why.mimetype] == ["application/json"] * 2


@pytest.mark.parametrize(("path", "status", "said"), cases("view", "asked_wrongly"))
def test_what_is_asked_wrongly_is_refused_in_one_sentence(
    viewer: FlaskClient, path: str, status: int, said: str
) -> None:
    answer = viewer.get(path)
    assert answer.status_code == status
    assert said in answer.get_json()["error"]


def test_only_reading_is_possible(viewer: FlaskClient) -> None:
    assert {
        viewer.post(path).status_code for path in ("/", "/api/moment", "/api/why", "/api/records")
    } == {405}


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (RuntimeError("secret"), 500, "unexpected RuntimeError: see the log of `roost view`"),
        (StoreError("database roost.db: it is away"), 503, "database roost.db: it is away"),
    ],
)
def test_a_database_that_is_away_is_named_and_what_is_unexpected_shows_no_traceback(
    viewer: FlaskClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(reading, "read_moment", fail)
    answer = viewer.get("/api/moment")
    assert (answer.status_code, answer.get_json()) == (status, {"error": said})


def test_an_empty_database_is_said_to_be_empty(tmp_path: Path) -> None:
    assert opened(empty_store(tmp_path)).get("/api/moment").get_json() == {"empty": True}


def test_the_latest_state_is_read_once_for_all_who_look(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int | None] = []
    real = reading.read_moment

    def counted(store: Store, at_us: int | None, now_us: int) -> ClusterMoment | None:
        times.append(at_us)
        return real(store, at_us, now_us)

    monkeypatch.setattr(reading, "read_moment", counted)
    monkeypatch.setattr("roost_lab.view.server.PAUSE_SECONDS", 1e9)
    viewer = opened(store)
    first = viewer.get("/api/moment").data
    assert viewer.get("/api/moment").data == first
    assert viewer.get(f"/api/moment?at={BEGIN}").data != first
    assert times == [None, BEGIN]


def test_the_command_says_what_it_cannot_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "--database", str(tmp_path / "none.db")]) == 2
    assert capsys.readouterr().err == f"roost view: {tmp_path / 'none.db'}: no such file\n"
    empty_store(tmp_path)
    with bind("127.0.0.1", 0) as taken:
        taken.listen(1)
        port = str(taken.getsockname()[1])
        assert main(["view", "--database", str(tmp_path / "roost.db"), "--port", port]) == 2
    assert f"roost view: 127.0.0.1:{port} can't be listened on" in capsys.readouterr().err
    assert main(["view", "--database", "x", "--at", "soon"]) == 2
    assert "soon: expected a time such as" in capsys.readouterr().err


def test_a_second_record_is_asked_for_by_its_number(tmp_path: Path) -> None:
    stores = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        stores.append(empty_store(tmp_path / name))
        stores[-1].write([pod_record(f"of-{name}")], {"pods": ("1", BEGIN)})
    client = opened(*stores, names=("one", "two"), now_us=BEGIN)
    assert client.get("/api/records").get_json() == {"records": ["one", "two"]}
    for query, name in (("", "one"), ("?record=0", "one"), ("?record=1", "two")):
        (pod,) = client.get(f"/api/moment{query}").get_json()["pending"]
        assert pod["name"] == f"hub/of-{name}"
    assert "of-two" in client.get("/api/why?record=1&uid=of-two").get_json()["text"]
    assert client.get("/api/why?uid=of-two").status_code == 404
    for number in ("2", "-1", "x", "", "00"):
        answer = client.get(f"/api/moment?record={number}")
        assert answer.status_code == 400
        assert answer.get_json() == {
            "error": f"record: found {number!r}, expected a number from 0 to 1"
        }


def test_records_are_called_by_their_files_unless_these_are_called_the_same() -> None:
    assert names_of(["sqlite:////tmp/a/monday.db", "postgresql://db/hub"]) == ["monday", "hub"]
    # A replay's record has its policy's name: it is called by what the policy is.
    assert names_of(["sqlite:////tmp/a/z2jh-placeholders-packed.db", "a/roost.db"]) == [
        "zero-to-jupyterhub with 25 placeholders",
        "Roost as it is installed",
    ]
    same = ["sqlite:////tmp/a/roost.db", "sqlite:////tmp/b/roost.db"]
    assert names_of(same) == same


def test_a_view_needs_a_record_or_a_cluster(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ROOST_DATABASE", raising=False)
    assert main(["view"]) == 2
    assert "found neither a record nor a cluster" in capsys.readouterr().err
    assert main(["view", "--live", "--at", "2026-11-17T09:00"]) == 2
    assert "a live cluster has no past" in capsys.readouterr().err
    missing = str(tmp_path / "none")
    assert main(["view", "--kubeconfig", missing]) == 2
    assert missing in capsys.readouterr().err
