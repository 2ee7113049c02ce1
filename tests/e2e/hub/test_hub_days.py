"""zero-to-jupyterhub's and BinderHub's whole charts with Roost's on real kubelets, from install to
uninstall.

Real: Helm, the charts, and their programs in pods: JupyterHub and KubeSpawner of the chart's pins,
the proxy, BinderHub, z2jh's user-scheduler, placeholders, pullers and awaiter. Stand-ins: users'
servers, which answer every request; repo2docker and Docker, so no build makes an image: the test
pushes one while the build's pod runs. What can't run here: JupyterLab at this pace, volumes that a
provisioner makes, a LoadBalancer, NetworkPolicies, the block of cloud metadata by iptables, https.
The proxy is 4.6, since newer ones need a newer Node than some Debian has.
"""

import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import scheduler_name
from tests.e2e.leftovers import leftovers
from tests.harness.fixtures import networked_nodes, push_roost, push_scheduler, require_binary
from tests.harness.hub import people
from tests.harness.hub.charts import (
    BINDERHUB,
    Z2JH,
    build_awaiter,
    build_images,
    chart_of_binderhub,
    fetch,
)
from tests.harness.hub.hub import HERE, ensure_proxy
from tests.harness.images import Image, read_archive
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until
from tests.parity.renderers import CHART, run_helm
from tests.recorded_data import DATA
from webhook.rendezvous import rank_nodes

pytestmark = [pytest.mark.e2e, pytest.mark.hub_day]

HUB, ROOST = "hub", "roost"
SECONDS = 120.0
PURPOSES = {"core-a": "core", "user-a": "user", "user-b": "user"}
# The hub's parts that Roost replaces, as doctor names them -> what import and doctor say to set
# there.
SWITCHES = {
    "Deployment user-scheduler": "scheduling.userScheduler.enabled=false",
    "StatefulSet user-placeholder": "scheduling.userPlaceholder.replicas=0",
    "DaemonSet continuous-image-puller": "prePuller.continuous.enabled=false",
}
OWN = f"{HUB}-user-scheduler"
# What restarts a release's programs; a number follows.
CHANGES = {HUB: "hub.extraEnv.A=v", ROOST: "webhook.extraEnv[0].name=A,webhook.extraEnv[0].value=v"}
EITHER_FIRST = (HUB, ROOST, ROOST, HUB)


@dataclass
class Day:
    """chart: the hub's. kind: of its values in tests/data/hub-days. built: what builds would have
    made.
    """

    node: RealNode
    folder: Path
    chart: Path
    kind: str
    built: Image

    def __post_init__(self) -> None:
        assert self.node.network is not None
        self.network, self.cluster = self.node.network, self.node.cluster
        self.namespace = self.cluster.create_namespace()
        made = self.folder / f"{self.namespace}.yaml"
        self._values = {HUB: DATA / "hub-days" / f"{self.kind}.yaml", ROOST: made}
        self.scheduler = scheduler_name(ROOST, self.namespace, "user")
        # Where the hub's chart stands in this one.
        self.below = "jupyterhub." if self.kind == "binder" else ""

    # Releases

    def helm(self, verb: str, release: str, *settings: str) -> None:
        """install: with the release's values; upgrade: with those that it has; both with what the
        settings change.
        """
        given = {"install": f"--values={self._values[release]}", "upgrade": "--reuse-values"}
        chart = [str(self.chart if release == HUB else CHART), given[verb]] if verb in given else []
        changes = [f"--set={setting}" for setting in settings]
        started = time.monotonic()
        self._helm(verb, release, *chart, *changes, "--wait", "--timeout=8m")
        print(f"helm {verb} {release} {' '.join(changes)}: {time.monotonic() - started:.1f} s")  # noqa: T201 - a figure

    def _helm(self, *arguments: str) -> str:
        space = f"--namespace={self.namespace}"
        return run_helm(
            require_binary("helm"), *arguments, space, kubeconfig=self.cluster.kubeconfig
        )

    def import_values(self, *, installed: bool = True) -> str:
        """Make Roost's values of what the hub's release has, or will have; what `roost import` said
        beside them.
        """
        has = self._values[HUB]
        if installed:
            has = self.folder / f"{self.namespace}-has.yaml"
            has.write_text(self._helm("get", "values", "--all", "--output=yaml", HUB))
        made = _roost("import", str(has), f"--hub-release={HUB}", "--details")
        assert made.returncode == 0, made.stderr
        self._values[ROOST].write_text(made.stdout)
        return made.stderr

    def doctor(self) -> tuple[int, str]:
        values, space = f"--values={self._values[ROOST]}", f"--namespace={self.namespace}"
        done = _roost(
            "doctor", values, space, f"--release={ROOST}", f"--kubeconfig={self.cluster.kubeconfig}"
        )
        return done.returncode, done.stdout + done.stderr

    # People and their pods

    def start(self, *users: str) -> list[people.Visit]:
        """Let people start servers through the hub's proxy; each reaches an answer."""
        with self.network.inside():
            visits = people.start(self._url("proxy", 8000), users, ["light", "other"])
        assert all(visit.answered_at for visit in visits), [
            visit for visit in visits if not visit.answered_at
        ]
        return visits

    def launch(self, repository: str) -> float:
        """Ask BinderHub for a repository at a ref, `lab/first/a`; seconds until its server has
        answered.
        """
        started = time.monotonic()
        with self.network.inside():
            address = f"{self._url('binder', 8585)}/build/gh/{repository}"
            asked = urllib.request.Request(address, headers={"Accept": "text/event-stream"})
            event: dict[str, Any] = {"phase": ""}
            with urllib.request.urlopen(asked, timeout=SECONDS) as stream:
                while event["phase"] not in ("ready", "failed"):
                    line = stream.readline()
                    assert line, event
                    event = json.loads(line[5:]) if line.startswith(b"data:") else event
                    if name := event.get("imageName", ""):
                        # What a real build would have done.
                        assert isinstance(self.node.registry, RealRegistry)
                        self.node.registry.push_image(name.partition("/")[2], self.built)
            assert event["phase"] == "ready", event
            server = self._url("proxy", 8000) + urlsplit(event["url"]).path
            with urllib.request.urlopen(server, timeout=SECONDS) as answer:
                assert answer.status == 200
        return time.monotonic() - started

    def builds(self) -> Counter[tuple[str, str, str]]:
        """Repository, node and scheduler of each build's pod."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        events = self.cluster.api.list(path, fieldSelector="reason=Scheduled")
        found: Counter[tuple[str, str, str]] = Counter()
        for event in events:
            if named := re.match(r"build-(\w+)-2d(\w+)-", event["involvedObject"]["name"]):
                node = event["message"].rpartition(" ")[2]
                found[f"{named[1]}/{named[2]}", node, event["reportingComponent"]] += 1
        return found

    def _url(self, component: str, port: int) -> str:
        (pod,) = self.pods(component)
        return f"http://{pod['status']['podIP']}:{port}"

    def pods(self, component: str) -> list[JSONObject]:
        """The hub's pods of one component that aren't leaving."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        pods = self.cluster.api.list(path, labelSelector=f"component={component}")
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    def schedulers(self) -> dict[str, str]:
        """Which scheduler each user's pod names."""
        return {
            pod["metadata"]["name"]: pod["spec"]["schedulerName"]
            for pod in self.pods("singleuser-server")
        }

    def lives(self) -> dict[str, int]:
        """The uid of each user's pod, with how often its container was started again."""
        users = self.pods("singleuser-server")
        return {
            pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["restartCount"]
            for pod in users
        }


def _roost(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "roost", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def new_day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Day]]:
    print(__doc__)  # noqa: T201 - what can't run here is said
    folder = tmp_path_factory.mktemp("days")
    z2jh, binderhub = (fetch(variable, folder / variable) for variable in (Z2JH, BINDERHUB))
    charts = {"z2jh": z2jh / "jupyterhub", "binder": chart_of_binderhub(binderhub, z2jh)}

    archives = build_images(z2jh, binderhub, HERE, ensure_proxy().parents[3], folder)
    images = {name: read_archive(archive) for name, archive in archives.items()}

    def fill(registry: RealRegistry) -> None:
        push_roost(registry)
        for name, image in {**images, "other": images["light"]}.items():
            registry.push_image(f"hub/{name}:1", image)
        registry.push("hub/image-awaiter:1", files={"/image-awaiter": build_awaiter(z2jh, folder)})
        push_scheduler(registry, "v1.35.4")
        registry.push_program("pause:hub")

    labels = {name: {"hub.jupyter.org/node-purpose": purpose} for name, purpose in PURPOSES.items()}
    with networked_nodes(fill, labels) as nodes:
        yield lambda kind: Day(nodes[0], folder, charts[kind], kind, images["light"])


def test_a_hub_gets_roost_grows_and_loses_it_again(new_day: Callable[[str], Day]) -> None:
    day = new_day("z2jh")
    day.helm("install", HUB)
    day.start("early")
    assert day.schedulers() == {"jupyter-early": OWN}
    said = day.import_values()
    day.helm("install", ROOST)
    switch_off(day, said)
    print(day.doctor()[1])  # noqa: T201 - what an operator sees

    took = sorted(visit.seconds for visit in day.start(*(f"user{number}" for number in range(30))))
    print(  # noqa: T201
        f"30 at once: median {statistics.median(took):.1f} s, slowest {took[-1]:.1f} s to the"
        " answer"
    )
    mine = {f"jupyter-user{number}": day.scheduler for number in range(30)}
    assert day.schedulers() == {**mine, "jupyter-early": OWN}
    lives = day.lives()

    for number, release in enumerate(EITHER_FIRST):
        day.helm("upgrade", release, f"{CHANGES[release]}{number}")
        day.start(f"guest{number}")
        assert day.schedulers()[f"jupyter-guest{number}"] == day.scheduler

    day.helm("uninstall", ROOST)
    wait_until_gone(day, ROOST)
    day.start("late")
    assert day.schedulers()["jupyter-late"] == "default-scheduler"
    # Users saw nothing of all that.
    assert lives.items() <= day.lives().items()
    day.helm("uninstall", HUB)
    wait_until_gone(day)


@pytest.mark.parametrize("kind", ["z2jh", "binder"])
def test_roost_comes_before_its_hub_and_goes_after_it(
    new_day: Callable[[str], Day], kind: str
) -> None:
    day = new_day(kind)
    day.import_values(installed=False)
    day.helm("install", ROOST)
    day.helm("install", HUB, *(f"{day.below}{switch}" for switch in SWITCHES.values()))
    if kind == "binder":
        day.launch("lab/fifth/a")
        assert {scheduler for _, _, scheduler in day.builds()} == {
            scheduler_name(ROOST, day.namespace, "build")
        }
    else:
        day.start("ada", "bob")
    assert set(day.schedulers().values()) == {day.scheduler}
    lives = day.lives()
    day.helm("uninstall", HUB)
    day.helm("uninstall", ROOST)
    assert day.lives() == lives
    wait_until_gone(day)


def test_a_binderhub_builds_where_it_is_warm_and_launches_what_it_built(
    new_day: Callable[[str], Day],
) -> None:
    day = new_day("binder")
    day.helm("install", HUB)
    said = day.import_values()
    day.helm("install", ROOST)
    switch_off(day, said)
    builders = [pod["spec"]["nodeName"] for pod in day.pods("image-builder")]
    assert sorted(builders) == ["user-a", "user-b"]
    repositories = [f"lab/{name}" for name in ("first", "second", "third", "fourth")]
    for ref in ("a", "b"):
        with ThreadPoolExecutor(len(repositories)) as pool:
            took = list(
                pool.map(day.launch, (f"{repository}/{ref}" for repository in repositories))
            )
        print(f"four builds at once: {max(took):.1f} s to the last server's answer")  # noqa: T201
    homes = {name: rank_nodes(f"https://example.org/{name}", builders)[0] for name in repositories}
    builds = scheduler_name(ROOST, day.namespace, "build")
    assert day.builds() == {(name, node, builds): 2 for name, node in homes.items()}
    assert set(homes.values()) == set(builders)
    assert (len(day.schedulers()), set(day.schedulers().values())) == (8, {day.scheduler})

    for number, release in enumerate(EITHER_FIRST):
        change = f"{day.below if release == HUB else ''}{CHANGES[release]}{number}"
        day.helm("upgrade", release, change)
        day.launch(f"lab/first/{number}")
    assert set(day.schedulers().values()) == {day.scheduler}
    assert day.builds().total() == 12
    lives = day.lives()
    day.helm("uninstall", ROOST)
    wait_until_gone(day, ROOST)
    day.launch("lab/first/c")
    assert set(day.schedulers().values()) == {day.scheduler, "default-scheduler"}
    assert lives.items() <= day.lives().items()
    day.helm("uninstall", HUB)
    wait_until_gone(day)


def switch_off(day: Day, said: str) -> None:
    """Set one switch after the other at the hub, as `roost import` said; doctor names those that
    are forgotten.
    """
    still_on = dict(SWITCHES)
    while still_on:
        wait_until(
            lambda: forgotten(day) == still_on.keys(),
            SECONDS,
            f"doctor to name {still_on}",
            explain=day.doctor,
        )
        switch = f"{day.below}{still_on.popitem()[1]}"
        assert f"switch off there: {switch.replace('=', ': ')}" in said, said
        day.helm("upgrade", HUB, switch)
    wait_until(
        lambda: day.doctor()[0] == 0 and not forgotten(day), SECONDS, "no fault", explain=day.doctor
    )


def forgotten(day: Day) -> set[str]:
    """Which parts of the hub doctor wants to be switched off."""
    found = re.findall(
        r"(\w+) \S+/(\S+) of zero-to-jupyterhub still runs beside Roost's", day.doctor()[1]
    )
    return {f"{kind} {name}" for kind, name in found}


def wait_until_gone(day: Day, release: str = "") -> None:
    """Nothing is left of a release, or of both without their users, but for the lock of the hub's
    own scheduler.
    """
    for name in () if release else day.schedulers():
        day.cluster.api.delete(f"/api/v1/namespaces/{day.namespace}/pods/{name}")

    def left() -> list[str]:
        found = leftovers(day.cluster.api, day.namespace, frozenset({"user-scheduler-lock"}))
        return [line for line in found if release in line]

    wait_until(lambda: not left(), SECONDS, "everything to be gone", explain=left)
