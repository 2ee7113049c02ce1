"""How long a request rests that the API server refuses, and that long lists are read whole."""

import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from pathlib import Path
from typing import cast

import pytest
import urllib3

from roost_core.kube.client import MOST_REFUSED_SECONDS, RETRIES, ApiError, Client, Query, list_all
from roost_core.kube.kubeconfig import connect_by_files
from tests.unit.roost_core.test_kube_account import kubeconfig

REQUESTS: dict[str, Callable[[Client], object]] = {
    "GET": lambda client: client.get("/x"),
    "PUT": lambda client: client.replace("/x", {}),
    "DELETE": lambda client: client.delete("/x", "u"),
    "WATCH": lambda client: list(client.lines("/x", {"watch": True}, 5.0)),
    "POST": lambda client: client.create("/x", {}),
    "PATCH": lambda client: client.merge("/x", {}, "m"),
}


class Refusing:
    """An API server that refuses the first requests, and asks to come again later."""

    def __init__(self) -> None:
        self.refusals = 0
        self.status = 429
        self.retry_after = ""
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked += 1
                is_refused = outer.asked <= outer.refusals
                self.send_response(outer.status if is_refused else 200)
                if is_refused and outer.retry_after:
                    self.send_header("Retry-After", outer.retry_after)
                if is_refused and outer.status == 307:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def __getattr__(self, name: str) -> object:
                if name.startswith("do_"):
                    return self.answer
                raise AttributeError(name)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def api() -> Iterator[Refusing]:
    server = Refusing()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client would have slept."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def clients(api: Refusing, folder: Path) -> list[Client]:
    """As a pod's account connects, and as a kubeconfig does."""
    return [
        Client(api.url, urllib3.PoolManager(retries=RETRIES)),
        connect_by_files(str(kubeconfig(folder / "config", api.url, "a")), None),
    ]


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_thread_never_sleeps_as_long_as_a_refusal_says(
    request_name: str, api: Refusing, slept: list[float], tmp_path: Path
) -> None:
    waits = ["1", "60", "3600", "999999", formatdate(time.time() + 7200), "0", ""]
    api.refusals = 9
    for client, status, wait in product(clients(api, tmp_path), (413, 429, 503), waits):
        api.asked = 0
        api.status = status
        api.retry_after = wait
        with pytest.raises(ApiError) as refused:
            REQUESTS[request_name](client)
        assert refused.value.status == status
        assert sum(slept) <= MOST_REFUSED_SECONDS
        assert api.asked <= 2
        slept.clear()


def test_what_is_refused_once_is_read_at_the_second_try(
    api: Refusing, slept: list[float], tmp_path: Path
) -> None:
    for client in clients(api, tmp_path):
        api.asked = 0
        api.refusals = 1
        api.retry_after = "1"
        assert client.get("/x") == {}
        assert slept == [1.0]
        slept.clear()


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_redirect_is_an_error_that_names_its_status(
    request_name: str, api: Refusing, tmp_path: Path
) -> None:
    api.refusals = 9
    api.status = 307
    for client in clients(api, tmp_path):
        api.asked = 0
        with pytest.raises(ApiError, match=r"/x: 307") as refused:
            REQUESTS[request_name](client)
        assert (refused.value.status, api.asked) == (307, 1)


class PagedList:
    """An API server with a list of 1,200 names, which it gives in pages."""

    def __init__(self) -> None:
        self.selectors: list[object] = []

    def get(self, _path: str, query: Query) -> dict[str, object]:
        self.selectors.append(query["labelSelector"])
        begin = int(query.get("continue", "0"))
        end = min(begin + int(query["limit"]), 1200)
        more = str(end) if end < 1200 else ""
        return {"metadata": {"continue": more}, "items": [{"name": n} for n in range(begin, end)]}


def test_a_long_list_is_read_whole_page_by_page() -> None:
    server = PagedList()
    found = list_all(cast("Client", server), "/api/v1/pods", {"labelSelector": "a=b"})
    assert [item["name"] for item in found] == [*range(1200)]
    # Each page is asked for by the same selector.
    assert server.selectors == ["a=b"] * 3
