"""`roost view` as a service of a real JupyterHub: what admins, users and strangers see."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from lab_tests.recorded import BEGIN, HOUR, MINUTE, bind_record, empty_store, pod_record
from roost_lab.recorder.store.records import DecisionKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.recorder.store.records import Record

ROOT = Path(__file__).parents[4]
START_SECONDS = 120


class Hub(NamedTuple):
    """A hub that runs, and its service."""

    address: str
    service: str
    token: str


class Answer(NamedTuple):
    status: int
    text: str
    address: str


class Viewer:
    """A browser's part: cookies and redirects."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, address: str, form: dict[str, str] | None = None) -> Answer:
        data = urllib.parse.urlencode(form).encode() if form else None
        try:
            with self._opener.open(address, data, timeout=60) as answer:
                return Answer(answer.status, answer.read().decode(), answer.url)
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode(), error.url)

    def sign_in(self, name: str) -> Answer:
        """Open the service, and fill in the hub's form."""
        form = self.get(f"{self.hub.service}/")
        assert form.address.startswith(f"{self.hub.address}/hub/login")
        (xsrf,) = {cookie.value or "" for cookie in self.cookies if cookie.name == "_xsrf" and cookie.path == "/hub/"}
        return self.get(form.address, {"username": name, "password": "x", "_xsrf": xsrf})


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def ask(address: str, token: str, method: str = "GET") -> int:
    """The status of a request to the hub's API; 0: nobody listens."""
    request = urllib.request.Request(address, method=method, headers={"Authorization": f"token {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("hub")
    store = empty_store(folder)
    records: list[Record] = []
    for name in ("ada", "bob"):
        records += [pod_record(f"uid-{name}", name=f"jupyter-{name}", created_us=BEGIN)]
        records += [bind_record(f"uid-{name}", BEGIN + MINUTE, "node-1")]
    # Somebody else's pod went for ada's.
    bind = bind_record("uid-ada", BEGIN, "node-1")
    preempted = replace(bind, id="uid-ada/preempt/uid-bob", kind=DecisionKind.PREEMPT)
    store.write([*records, preempted], {"pods": ("1", BEGIN + HOUR)})
    store.close()
    hub_port, service_port, token = free_port(), free_port(), secrets.token_hex(16)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUPYTERHUB")},
        "PYTHONPATH": str(ROOT),
        "PYTHON": sys.executable,
        "FOLDER": str(folder),
        "DATABASE": str(folder / "roost.db"),
        "HUB_PORT": str(hub_port),
        "SERVICE_PORT": str(service_port),
        "API_TOKEN": token,
    }
    log = folder / "hub.log"
    config = str(Path(__file__).with_name("hub_config.py"))
    running = Hub(f"http://127.0.0.1:{hub_port}", f"http://127.0.0.1:{service_port}/services/roost", token)
    with log.open("w") as written:
        command = [sys.executable, "-m", "jupyterhub", "--config", config]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=written, stderr=written)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not (
                ask(f"{running.address}/hub/health", token) == 200 and ask(f"{running.service}/api/moment", "") == 403
            ):
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.2)
            for name in ("ada", "bob", "cyd"):
                assert ask(f"{running.address}/hub/api/users/{name}", token, "POST") == 201
            for name in ("ada", "bob"):
                assert ask(f"{running.address}/hub/api/users/{name}/server", token, "POST") in (201, 202)
            yield running
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_an_admin_of_the_hub_sees_everything(hub: Hub) -> None:
    viewer = Viewer(hub)
    page = viewer.sign_in("grace")
    assert (page.status, page.address) == (200, f"{hub.service}/")
    assert 'src="view.js"' in page.text
    moment = json.loads(viewer.get(f"{hub.service}/api/moment").text)
    assert {pod["name"] for node in moment["nodes"] for pod in node["pods"]} == {"hub/jupyter-ada", "hub/jupyter-bob"}
    assert viewer.get(f"{hub.service}/api/why?uid=uid-bob").status == 200
    assert viewer.get(f"{hub.service}/view.js").status == 200


def test_a_user_sees_the_why_of_their_own_pods_and_nothing_else(hub: Hub) -> None:
    viewer = Viewer(hub)
    page = viewer.sign_in("ada")
    assert (page.status, page.address) == (200, f"{hub.service}/")
    assert "Where it went: node node-1" in page.text
    assert re.findall(r"jupyter-\w+", page.text).count("jupyter-ada") == 2
    assert "Pre-empted for it on node-1: a pod of lower priority." in page.text
    assert "bob" not in page.text
    for path in ("api/moment", "api/live", "api/why?uid=uid-bob", "api/why?uid=uid-ada", "view.js"):
        refused = viewer.get(f"{hub.service}/{path}")
        assert (refused.status, json.loads(refused.text)) == (403, {"error": "only admins of the hub see this"})
    assert viewer.get(f"{hub.service}/page.css").status == 200


def test_a_browser_signs_in_and_draws_the_cluster(hub: Hub) -> None:
    browser = pytest.importorskip("tools.browser", reason="no Selenium: make setup installs it")
    if browser.missing():
        pytest.skip(browser.missing())
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415 - where it is installed

    with browser.open_browser() as driver:
        driver.get(f"{hub.service}/")
        driver.find_element("name", "username").send_keys("grace")
        driver.find_element("name", "password").send_keys("x")
        browser.console(driver)
        driver.find_element("id", "login_submit").click()
        drawn = "return document.querySelectorAll('#nodes .pod').length === 2"
        WebDriverWait(driver, 60).until(lambda one: one.execute_script(drawn))
        assert driver.current_url == f"{hub.service}/"
        driver.find_element("css selector", "#nodes .pod").click()
        told = "return document.getElementById('why-text').textContent.includes('Where it went')"
        WebDriverWait(driver, 60).until(lambda one: one.execute_script(told))
        assert browser.console(driver) == []


def test_a_user_without_a_server_is_told_so(hub: Hub) -> None:
    assert "None of your servers is running or starting." in Viewer(hub).sign_in("cyd").text


def test_a_stranger_sees_nothing(hub: Hub) -> None:
    for path in ("api/moment", "api/live", "api/why?uid=uid-ada", "page.css", "nothing"):
        refused = Viewer(hub).get(f"{hub.service}/{path}")
        assert refused.status == 403
        assert "signed in" in json.loads(refused.text)["error"]


def test_a_sign_in_that_was_not_begun_here_is_refused(hub: Hub) -> None:
    viewer = Viewer(hub)
    viewer.sign_in("grace")
    for query in ("", "?code=x", "?code=x&state=made-up", "?state=&code=x"):
        refused = viewer.get(f"{hub.service}/oauth_callback{query}")
        assert refused.status == 403
        assert "wasn't begun here" in json.loads(refused.text)["error"]


def test_a_cookie_of_another_process_is_no_session(hub: Hub) -> None:
    viewer = Viewer(hub)
    viewer.sign_in("grace")
    for cookie in viewer.cookies:
        if cookie.name == "roost-view":
            cookie.value = f"{(cookie.value or '')[:-4]}AAAA"
    assert viewer.get(f"{hub.service}/api/moment").status == 403
