"""How long people wait for a server that was started before their class, on a real JupyterHub.

python -m benchmarks.seating [--people 320] [--lead 380] [--restart] [--unseated]

A group's people are seated for a class; a fifth of them is absent. The others open their server
within two minutes. --lead: seconds until the class begins, more on a busy machine. --restart: the
hub is restarted when half are seated. --unseated: nobody is seated, for a comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import aiohttp

from tests.harness.hub.hub import RealHub, ensure_pinned_hub
from tests.harness.hub.people import Visit, log_in, reach
from tests.harness.hub.seating import Seating
from tests.harness.hub.stage import hub_stage
from tests.harness.hub.user_pods import PORT
from tests.harness.waiting import wait_until

IMAGE: Final = "quay.io/hub/light:1"
LIMIT: Final = 64
GRACE_SECONDS: Final = 180.0
COMING_SECONDS: Final = 120.0
ABSENT_SHARE: Final = 0.2
PROFILES: Final = [
    {"display_name": "Light", "slug": "light", "default": True},
    {"display_name": "Course", "slug": "course"},
]


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds from a click to HTTP 200, and what went wrong."""

    waits: Sequence[float]
    refused: int
    failed: int
    # Servers of absent people when all had come, and after the grace.
    absent_before: int
    absent_after: int
    # Servers of people who came, after the grace.
    came_after: int

    def line(self) -> str:
        """The figures in a line."""
        waits = sorted(self.waits)
        at = {share: waits[min(len(waits) - 1, int(share * len(waits)))] for share in (0.5, 0.99)}
        return (
            f"{len(waits)} answered; click to HTTP 200: median {at[0.5]:.2f} s, p99 {at[0.99]:.2f}"
            f" s, most {waits[-1]:.2f} s; refused {self.refused}, failed {self.failed}; absent"
            f" people's servers: {self.absent_before}, after the grace {self.absent_after};"
            f" servers of those who came, after the grace: {self.came_after}"
        )


async def _come(url: str, visit: Visit, after_seconds: float) -> Visit:
    """Log in beforehand, as people do who open the hub's page, and click when their time comes."""
    jar = aiohttp.CookieJar(unsafe=True)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as session:
        await asyncio.sleep(after_seconds)
        await log_in(session, url, visit.user)
        visit.clicked_at = time.time()
        try:
            await reach(session, url, visit)
        except (aiohttp.ClientError, TimeoutError) as error:
            visit.fault = f"{type(error).__name__}: {error}"
    return visit


async def _all_come(url: str, people: Sequence[str]) -> list[Visit]:
    chance = random.Random(7)  # noqa: S311 - nobody's secret
    visits = [
        _come(url, Visit(name, "course"), chance.uniform(0, COMING_SECONDS)) for name in people
    ]
    return list(await asyncio.gather(*visits))


def measure(people: int, *, lead_seconds: float, restart: bool, seated: bool) -> Figures:
    """Play one class."""
    names = [f"student{number:03}" for number in range(people)]
    chance = random.Random(3)  # noqa: S311 - nobody's secret
    absent = set(chance.sample(names, round(ABSENT_SHARE * people)))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nodes = [f"user-{number}" for number in range(8)]
        cluster = stack.enter_context(
            hub_stage(nodes, {IMAGE: 1.0}, cpu="32", memory="128Gi")
        ).cluster
        hub = stack.enter_context(
            RealHub(
                cluster,
                cluster.create_namespace("class"),
                packages=ensure_pinned_hub(),
                groups={"class": names},
                hub={"concurrent_spawn_limit": LIMIT},
                image=IMAGE,
                port=PORT,
                start_timeout=120,
                profile_list=PROFILES,
            )
        )
        seating = Seating(cluster, hub, folder, concurrentSpawnLimit=LIMIT)
        ahead = lead_seconds if seated else 5
        begin = (datetime.now(UTC) + timedelta(seconds=ahead)).replace(second=0, microsecond=0)
        begin += timedelta(minutes=1)
        entry = {"name": "class", "people": people, "timeZone": "UTC", "group": "class"}
        entry |= {"start": f"{begin:%Y-%m-%dT%H:%M}", "profile": "course"}
        seating.book(*([entry] if seated else []))
        process = seating.start("--start-seconds=60", grace_seconds=GRACE_SECONDS)
        stack.callback(process.stop)
        if seated:

            def all_ready() -> bool:
                return sum(state == "ready" for state in hub.servers().values()) == people

            def half_ready() -> bool:
                return sum(state == "ready" for state in hub.servers().values()) >= people / 2

            asked = time.time()
            if restart:
                wait_until(half_ready, 600, "half to be seated", interval_seconds=1)
                hub.restart()
            wait_until(
                all_ready,
                begin.timestamp() - time.time(),
                "all to be seated",
                interval_seconds=2,
                explain=lambda: process.tail(40),
            )
            print(f"seated {people} in {time.time() - asked:.0f} s")
        time.sleep(max(0.0, begin.timestamp() - time.time() - COMING_SECONDS / 2))
        visits = asyncio.run(_all_come(hub.url, [name for name in names if name not in absent]))
        servers = hub.servers()
        absent_before = sum(f"{name}/" in servers for name in absent)
        time.sleep(max(0.0, begin.timestamp() + GRACE_SECONDS + 45 - time.time()))
        servers = hub.servers()
        return Figures(
            waits=[visit.seconds for visit in visits if visit.answered_at],
            refused=sum("429" in part for visit in visits for part in visit.broken),
            failed=sum(not visit.answered_at for visit in visits),
            absent_before=absent_before,
            absent_after=sum(f"{name}/" in servers for name in absent),
            came_after=len(servers) - sum(f"{name}/" in servers for name in absent),
        )


def main() -> int:
    """Print the figures of one class."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=320)
    parser.add_argument("--lead", type=float, help="default: a second for each of them, and 60")
    parser.add_argument("--restart", action="store_true")
    parser.add_argument("--unseated", action="store_true")
    given = parser.parse_args()
    figures = measure(
        given.people,
        lead_seconds=given.lead or given.people + 60,
        restart=given.restart,
        seated=not given.unseated,
    )
    print(figures.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
