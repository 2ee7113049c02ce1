"""How fast the page of `roost view` is with 200 nodes and 5,000 pods, in a headless Chromium
without a GPU.

.venv/bin/python -m benchmarks.view [--nodes 200] [--pods 5000] [--seconds 5]

It measures the answer (time, size), drawing it for the first time and again after a change, and
frames while the page is scrolled from top to bottom; beside it, those of an empty page of the same
height, for what the machine does.
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
# Times between frames, in ms, while the page is scrolled for arguments[0] ms.
SCROLL: Final = """
const [length, done] = arguments, frames = [], begin = performance.now();
const height = document.documentElement.scrollHeight - innerHeight;
let last = begin;
scrollTo(0, 0);
requestAnimationFrame(function step(now) {
  frames.push(now - last);
  last = now;
  scrollTo(0, height * (now - begin) / length);
  if (now - begin < length) requestAnimationFrame(step); else done(frames.slice(2));
});
"""
EMPTY: Final = """
const height = document.documentElement.scrollHeight;
document.body.replaceChildren();
document.body.style.height = `${height}px`;
"""
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
    parser.add_argument("--seconds", type=float, default=5.0)
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
                _measure(driver, address, width, options.seconds)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process, the server's and the benchmark's: {peak_mib:.0f} MiB")
    return 0


def _measure(driver: Chrome, address: str, width: int, seconds: float) -> None:
    driver.get("about:blank")
    begin = time.perf_counter()
    driver.get(address)
    while not driver.execute_script("return document.documentElement.dataset.shown"):
        time.sleep(0.01)
    print(f"{width} px wide: opened in {time.perf_counter() - begin:.2f} s")
    driver.set_script_timeout(60)
    frames = driver.execute_async_script(SCROLL, seconds * 1000)
    drawn: list[float] = driver.execute_async_script(DRAW)
    driver.execute_script(EMPTY)
    for name, times in (
        ("this page", frames),
        ("an empty page", driver.execute_async_script(SCROLL, seconds * 1000)),
    ):
        print(f"  {name}, scrolled for {seconds:g} s: {_shown(sorted(times))}")
    print(f"  drawn again with one node changed in {drawn[0]:.0f} and {drawn[1]:.0f} ms")


def _shown(frames: list[float]) -> str:
    late = sum(frame > 1.5 * 1000 / 60 for frame in frames)
    return (
        f"{len(frames)} frames, median {statistics.median(frames):.1f} ms, p95"
        f" {_at(frames, 0.95):.1f} ms, longest {frames[-1]:.1f} ms, {late} late"
    )


def _at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    sys.exit(main())
