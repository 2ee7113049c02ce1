"""How fast the page of `roost view` is with 200 nodes and 5,000 pods, in a headless Chromium
without a GPU.

.venv/bin/python -m benchmarks.view [--nodes 200] [--pods 5000]

It measures the answer (time, size), and drawing it for the first time and again after a change.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from benchmarks.view_record import records
from lab.tests.served_view import served_view
from roost_lab.recorder.store.database import Store
from roost_lab.view.moment import as_json
from roost_lab.view.reading import RecordSource
from tests.harness import browser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SIZES: Final = ((1280, 900), (390, 800))
# ms from the answer's text to a page that is laid out: all boxes, and with one pod less.
DRAW: Final = """
const [done] = arguments;
const answered = fetch("api/moment", { headers: { "X-Roost-View": "1" } });
answered.then((answer) => answer.text()).then((text) => {
  const draw = (state) => {
    const begin = performance.now();
    dispatchEvent(new CustomEvent("roost-state", {detail: state}));
    document.body.getBoundingClientRect();
    return performance.now() - begin;
  };
  const less = JSON.parse(text);
  less.nodes[0].pods.pop();
  done([draw(less), draw(JSON.parse(text))]);
});
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, browser.open_browser() as driver:
        now_us = time.time_ns() // 1000
        store = Store.open(str(Path(folder) / "roost.db"))
        store.migrate()
        store.write(records(now_us, options.nodes, options.pods), {"pods": ("1", now_us)})
        source = RecordSource(store, now_us=lambda: now_us)
        spans = []
        for _ in range(7):
            begin = time.perf_counter()
            found = source.moment(None)
            size = len(orjson.dumps(as_json(found))) if found is not None else 0
            spans.append(time.perf_counter() - begin)
        print(f"answer: {size / 1e6:.2f} MB in {statistics.median(spans) * 1000:.0f} ms")
        with served_view([source]) as address:
            for width, height in SIZES:
                browser.set_size(driver, width, height)
                _measure(driver, address, width)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process, the server's and the benchmark's: {peak_mib:.0f} MiB")
    return 0


def _measure(driver: Chrome, address: str, width: int) -> None:
    driver.get("about:blank")
    begin = time.perf_counter()
    driver.get(address)
    while not driver.execute_script("return document.documentElement.dataset.shown"):
        time.sleep(0.01)
    print(f"{width} px wide: opened in {time.perf_counter() - begin:.2f} s")
    driver.set_script_timeout(60)
    drawn: list[float] = driver.execute_async_script(DRAW)
    print(f"  drawn again with one node changed in {drawn[0]:.0f} and {drawn[1]:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
