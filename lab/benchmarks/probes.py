"""What a probe of users' servers changes: zero-to-jupyterhub's chart, hub and KubeSpawner on a real
kubelet.

`python -m benchmarks.probes`: servers begin to listen so many seconds after their container; from
the click to HTTP 200 beyond that, starts that failed, and warnings on the spawn page, with and
without a probe. A stand-in answers for JupyterLab, which as well listens only once it can answer.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Final

import yaml

from benchmarks.figures import machine, say, spread, table
from roost_core.objects.fields import JSONObject
from tests.e2e.hub.test_hub_days import HUB, Day
from tests.harness.fixtures import networked_nodes
from tests.harness.hub import people
from tests.harness.hub.charts import BINDERHUB, Z2JH, build_images, fetch
from tests.harness.hub.hub import HERE, ensure_proxy
from tests.harness.images import Image, read_archive
from tests.harness.waiting import wait_until
from tests.recorded_data import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.harness.registry import RealRegistry

SLOW: Final = (2, 5, 12, 40)
PROBE: Final = {"tcpSocket": {"port": "notebook-port"}, "periodSeconds": 1}
# The hub's start_timeout is 300 s: a startup probe that fails more often than its threshold has the
# container killed.
ARMS: Final[Mapping[str, JSONObject]] = {
    "no probe": {},
    "readinessProbe": {"extra_container_config": {"readinessProbe": PROBE}},
    "startupProbe": {
        "extra_container_config": {"startupProbe": {**PROBE, "failureThreshold": 330}}
    },
    "http_timeout 120": {"http_timeout": 120},
}


def profiles() -> Iterator[tuple[str, int, str]]:
    """Slug, seconds until the server listens, and arm."""
    for seconds in SLOW:
        for number, arm in enumerate(ARMS):
            # Others answer within the default http_timeout.
            if seconds > 30 or arm != "http_timeout 120":
                yield f"s{seconds}x{number}", seconds, arm


def values() -> JSONObject:
    """The tests' values of the hub, without what isn't measured, and with a profile for each
    pair.
    """
    found: JSONObject = yaml.safe_load((DATA / "hub-days/z2jh.yaml").read_text())
    serve = " ".join(found["singleuser"]["cmd"])
    found["singleuser"] |= {
        "cpu": {"guarantee": 0.001},
        "memory": {"guarantee": "16M"},
        "profileList": [],
    }
    for slug, seconds, arm in profiles():
        override = {"cmd": ["sh", "-c", f"sleep {seconds}; exec {serve}"], **ARMS[arm]}
        profile = {
            "display_name": f"{seconds} s, {arm}",
            "slug": slug,
            "kubespawner_override": override,
        }
        found["singleuser"]["profileList"].append(profile)
    found["hub"]["consecutiveFailureLimit"] = 0
    off = {"enabled": False}
    found["scheduling"] = {"userScheduler": off, "userPlaceholder": off, "podPriority": off}
    found["prePuller"] = {"hook": off, "continuous": off}
    return found


def start(day: Day, users: Sequence[str], slugs: Sequence[str], gap: float) -> list[people.Visit]:
    """People start servers, whose pods stay."""
    (proxy,) = day.pods("proxy")
    with day.network.inside():
        return people.start(f"http://{proxy['status']['podIP']}:8000", users, slugs, gap=gap)


def remove_servers(day: Day) -> None:
    """End every server at once; the hub finds out by itself."""
    for pod in day.pods("singleuser-server"):
        path = f"/api/v1/namespaces/{day.namespace}/pods/{pod['metadata']['name']}"
        day.cluster.api.delete(path, gracePeriodSeconds=1)
    wait_until(lambda: not day.pods("singleuser-server"), 60, "the servers to go")


def starts(day: Day, rounds: int, number: int, gap: float) -> None:
    """Each profile so often a round, in turns."""
    played = list(profiles())
    visits: dict[str, list[people.Visit]] = defaultdict(list)
    by_round: dict[str, list[str]] = defaultdict(list)
    for round_ in range(rounds):
        users = [f"r{round_}n{index}" for index in range(number * len(played))]
        started = start(day, users, [slug for slug, _, _ in played], gap)
        for slug, seconds, _ in played:
            mine = [visit for visit in started if visit.profile == slug]
            visits[slug] += mine
            took = [visit.seconds - seconds for visit in mine if visit.answered_at]
            by_round[slug].append(f"{mean(took):.2f}" if took else "-")
        say(f"round {round_ + 1}, load {os.getloadavg()[0]:.0f}: {by_round}")
        remove_servers(day)
    rows = []
    for slug, seconds, arm in played:
        took = [visit.seconds - seconds for visit in visits[slug] if visit.answered_at]
        warned = [sum("probe failed" in line for _, line in visit.shown) for visit in visits[slug]]
        failed = f"{len(visits[slug]) - len(took)} of {len(visits[slug])}"
        rows.append(
            [f"{seconds} s", arm, spread(took), *by_round[slug], failed, f"{mean(warned):.1f}"]
        )
    means = [f"mean of round {round_number + 1}" for round_number in range(rounds)]
    for arms in (("no probe", "http_timeout 120"), ("readinessProbe",), ("startupProbe",)):
        every = [
            (seconds, visit)
            for slug, seconds, arm in played
            if arm in arms
            for visit in visits[slug]
        ]
        took = [visit.seconds - seconds for seconds, visit in every if visit.answered_at]
        say(f"{' or '.join(arms)}: mean of {len(took)} starts {mean(took):.2f} s")
    say("Seconds from click to HTTP 200 beyond those until the server listens:")
    say(table(["listens after", "", "median (range)", *means, "failed", "warnings a start"], rows))


def main() -> None:
    """Install the chart and play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--starts", type=int, default=5, help="of each profile in a round")
    parser.add_argument("--gap", type=float, default=1.5, help="seconds between two clicks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        z2jh, binderhub = (fetch(variable, folder / variable) for variable in (Z2JH, BINDERHUB))
        archives = build_images(z2jh, binderhub, HERE, ensure_proxy().parents[3], folder)
        images: Mapping[str, Image] = {
            name: read_archive(archives[name]) for name in ("light", "hub", "proxy")
        }
        (folder / "probes.yaml").write_text(yaml.safe_dump(values()))

        def fill(registry: RealRegistry) -> None:
            for name, image in images.items():
                registry.push_image(f"hub/{name}:1", image)

        with networked_nodes(fill, {"user-a": {}}) as nodes:
            # A path of our own stands for the name of the tests' values.
            day = Day(
                nodes[0], folder, z2jh / "jupyterhub", str(folder / "probes"), images["light"]
            )
            day.helm("install", HUB)
            say(machine())
            start(day, ["first"], ["s2x0"], 0)  # what is slow only once
            starts(day, options.rounds, options.starts, options.gap)


if __name__ == "__main__":
    main()
