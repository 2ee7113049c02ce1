"""Take the pictures of docs/morning.md: a real JupyterHub with Roost, whose users come on one
morning.

.venv/bin/python -m tools.take_morning [FOLDER]    default: docs/images; needs what the end-to-end
tests need, and Debian's chromium-driver. JupyterHub, KubeSpawner, kube-scheduler and Roost's
programs are real; nodes are made up, and servers are processes that answer.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from lab.tests.served_view import served_view
from roost_lab.recorder.store.database import Store
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from roost_lab.units import US
from roost_lab.view.reading import RecordSource
from tests.harness import browser
from tests.harness.hub.hub import PASSWORD, RealHub
from tests.harness.hub.hub_pod import hub_pod
from tests.harness.hub.people import start
from tests.harness.hub.stage import hub_stage
from tests.harness.hub.user_pods import PORT
from tests.stack import Stack
from tools.root import ROOT
from tools.take_screenshots import picture, show_view

if TYPE_CHECKING:
    from selenium import webdriver

IMAGES: Final = ROOT / "docs" / "images"
MINIMAL = "quay.io/jupyter/minimal-notebook:2026-11-02"
PYTORCH = "quay.io/jupyter/pytorch-notebook:2026-11-02"
PROFILES: Final[list[dict[str, Any]]] = [
    {"display_name": "Minimal", "slug": "minimal", "default": True},
    {
        "display_name": "PyTorch",
        "slug": "pytorch",
        "kubespawner_override": {"image": PYTORCH, "mem_guarantee": "4G"},
    },
]
VALUES: Final[dict[str, Any]] = {
    "singleuser": {
        "image": {"name": MINIMAL.partition(":")[0], "tag": "2026-11-02"},
        "memory": {"guarantee": "2G"},
    },
    "placeholders": [
        {"name": "default", "replicas": 4, "resources": {"requests": {"memory": "2G"}}}
    ],
    "prePuller": {"enabled": False},
    "imageGate": {"mode": "off"},
    "recorder": {"enabled": True},
}
NAMES: Final = (
    "ada",
    "bob",
    "cyd",
    "dan",
    "eve",
    "fay",
    "gil",
    "hal",
    "ivy",
    "joe",
    "kim",
    "lea",
    "max",
    "ned",
    "oda",
)
WIDTH: Final = 1000
# Of the spawn page, so long as a notice stands on it.
NOTICE_SECONDS: Final = 120


def wait_on_the_page(driver: webdriver.Chrome, url: str, user: str, words: str) -> None:
    """Log in as a user, choose PyTorch, and wait until the page says these words, in capitals or
    not.
    """
    driver.get(f"{url}/hub/login?next=%2Fhub%2Fspawn")
    driver.find_element(By.NAME, "username").send_keys(user)
    driver.find_element(By.NAME, "password").send_keys(PASSWORD)
    driver.find_element(By.ID, "login_submit").click()
    WebDriverWait(driver, NOTICE_SECONDS).until(
        lambda opened: opened.find_elements(By.CSS_SELECTOR, "input[value=pytorch]")
    )
    driver.find_element(By.CSS_SELECTOR, "input[value=pytorch]").click()
    driver.find_element(
        By.CSS_SELECTOR, "form input[type=submit], form button[type=submit]"
    ).click()
    WebDriverWait(driver, NOTICE_SECONDS).until(
        lambda opened: (
            words
            in opened.execute_script(
                "return document.getElementById('progress-message')?.innerText.toLowerCase() || ''"
            )
        )
    )


def main(argv: list[str] | None = None) -> int:
    """Take them."""
    arguments = sys.argv[1:] if argv is None else argv
    folder = Path(arguments[0]) if arguments else IMAGES
    with contextlib.ExitStack() as stack:
        pulls = {MINIMAL: 6.0, PYTORCH: 45.0}
        cluster, nodes, _ = stack.enter_context(
            hub_stage(["node-1", "node-2", "node-3"], pulls, memory="32Gi")
        )
        roost = stack.enter_context(
            Stack(cluster, cluster.create_namespace("hub"), VALUES, controllers=True)
        )
        spawner: dict[str, Any] = {
            "image": MINIMAL,
            "mem_guarantee": "2G",
            "port": PORT,
            "start_timeout": 300,
        }
        hub = stack.enter_context(
            RealHub(cluster, roost.namespace, **spawner, profile_list=PROFILES)
        )
        stack.enter_context(hub_pod(cluster, nodes, roost.namespace, lambda: hub.hub.log_path))
        recorder = roost.start_recorder()
        recorder.wait_ready()
        driver = stack.enter_context(browser.open_browser())
        browser.set_size(driver, WIDTH, 560)
        began = time.time()
        others = threading.Thread(
            target=lambda: start(hub.url, NAMES, ["minimal", "minimal", "pytorch"], gap=3.0)
        )
        others.start()
        wait_on_the_page(driver, hub.url, "zoe", "downloading your server")
        taken = {"morning-spawn": picture(driver, top=0, height=330, width=WIDTH)}
        others.join()
        time.sleep(5)
        recorder.process.stop()
        store = Store.open_for_reading(roost.recorder_environment()["ROOST_DATABASE"])
        stack.callback(store.close)
        with served_view([RecordSource(store)]) as address:
            show_view(driver, address, began + 25, WIDTH, 930)
            # What happened over the morning comes after the moment.
            WebDriverWait(driver, 60).until(
                lambda opened: opened.find_elements(By.CSS_SELECTOR, "#timeline .lane")
            )
            taken["morning-view"] = picture(driver, top=0, height=1210, width=WIDTH)
        page = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "report.html"
        page.write_text(
            make_page(gather(store, round(began * US)), "The morning's record."), encoding="utf-8"
        )
        browser.show_report(driver, page, WIDTH, browser.LIGHT)
        taken["morning-report"] = picture(driver, top=0, height=900, width=WIDTH)
    for name, image in taken.items():
        (folder / f"{name}.png").write_bytes(image)
        print(f"{folder / name}.png: {len(image):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
