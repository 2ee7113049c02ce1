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
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import scheduler_name
from tests.binderhub_ring import rank_nodes
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
CLASS = DATA / "hub-days/class.yaml"
# The people of its group. Eve has started her own server; one of those who are seated doesn't come.
LISTED = ("ada", "bob", "cy", "dan", "eve")
SEATED = LISTED[:4]
CAME = LISTED[:3]
ABSENT = "dan"
GRACE_SECONDS = 300.0


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
        # Of each release; later files win.
        self._values = {HUB: [DATA / "hub-days" / f"{self.kind}.yaml"], ROOST: [made]}
        self.scheduler = scheduler_name(ROOST, self.namespace, "user")
        # Where the hub's chart stands in this one.
        self.below = "jupyterhub." if self.kind == "binder" else ""

    # Releases

    def helm(self, verb: str, release: str, *settings: str) -> None:
        """install: with the release's values; upgrade: with those that it has; both with what the
        settings change.
        """
        values = [f"--values={file}" for file in self._values[release]]
        given = {"install": values, "upgrade": ["--reuse-values"], "uninstall": []}
        chart = [] if verb == "uninstall" else [str(self.chart if release == HUB else CHART)]
        changes = [f"--set={setting}" for setting in settings]
        started = time.monotonic()
        self._helm(verb, release, *chart, *given[verb], *changes, "--wait", "--timeout=8m")
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
            has = [self.folder / f"{self.namespace}-has.yaml"]
            has[0].write_text(self._helm("get", "values", "--all", "--output=yaml", HUB))
        made = _roost("import", *map(str, has), f"--hub-release={HUB}", "--details")
        assert made.returncode == 0, made.stderr
        self._values[ROOST][0].write_text(made.stdout)
        return made.stderr

    def made(self) -> str:
        """Roost's values, as `import_values` made them."""
        return self._values[ROOST][0].read_text()

    def add_values(self, release: str, text: str) -> None:
        """Install the release with these values, too, over those that it has."""
        files = self._values[release]
        files.append(self.folder / f"{self.namespace}-{release}-{len(files)}.yaml")
        files[-1].write_text(text)

    def doctor(self) -> tuple[int, str]:
        values = [f"--values={file}" for file in self._values[ROOST]]
        done = self._ask("doctor", *values)
        return done.returncode, done.stdout + done.stderr

    def book(self, *words: str) -> str:
        """What `roost book` says."""
        done = self._ask("book", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _ask(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of Roost's about its release."""
        kubeconfig = f"--kubeconfig={self.cluster.kubeconfig}"
        space = f"--namespace={self.namespace}"
        return _roost(command, *arguments, space, f"--release={ROOST}", kubeconfig)

    # People and their pods

    def start(self, *users: str) -> list[people.Visit]:
        """Let people start servers through the hub's proxy; each reaches an answer."""
        with self.network.inside():
            visits = people.start(self._url("proxy", 8000), users, ["light", "other"])
        assert all(visit.answered_at for visit in visits), [
            visit for visit in visits if not visit.answered_at
        ]
        return visits

    def owner(self, token: str) -> str:
        """Whose an API token is, as the hub says."""
        with self.network.inside():
            address = f"{self._url('hub', 8081)}/hub/api/user"
            asked = urllib.request.Request(address, headers={"Authorization": f"token {token}"})
            with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
                return str(json.load(answer)["name"])

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

    def servers(self) -> dict[str, JSONObject]:
        """Users' pods that are ready, by user."""
        return {
            pod["metadata"]["annotations"]["hub.jupyter.org/username"]: pod
            for pod in self.pods("singleuser-server")
            if any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in pod["status"].get("conditions", ())
            )
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


def test_a_class_is_seated_by_the_lines_of_the_page(new_day: Callable[[str], Day]) -> None:
    day = new_day("z2jh")
    of_hub, of_roost = lines_of_the_page()
    assert _roost("import", "--seating").stdout == of_hub
    day.add_values(HUB, CLASS.read_text())
    day.add_values(HUB, for_one_group(of_hub))
    day.import_values(installed=False)
    made = yaml.safe_load(day.made())
    assert (made["events"]["enabled"], made["seating"]) == (True, {"enabled": True})
    day.add_values(ROOST, of_roost)
    # The least grace that the chart takes.
    day.add_values(ROOST, "seating: {graceMinutes: 5}")
    day.helm("install", HUB, *SWITCHES.values())
    # The chart replaces the proxy at the first upgrade, since it makes the proxy's token at random.
    # Now that is over.
    day.helm("upgrade", HUB, f"{CHANGES[HUB]}0")
    day.start("eve", "zoe")
    own = uids_of(day.servers())
    day.helm("install", ROOST)
    wait_until(lambda: day.doctor()[0] == 0, SECONDS, "no fault", explain=day.doctor)

    at = time.time() + 400
    begin = at + 60 - at % 60
    when = f"{datetime.fromtimestamp(begin, UTC):%Y-%m-%d %H:%M}"
    words = ["--zone", "UTC", "--name", "biology", "--group", "bio101", "--profile", "Other"]
    # Zoe isn't in the group of the token's role.
    listed = day.folder / "listed.txt"
    listed.write_text("zoe\n")
    day.book(str(len(LISTED)), *when.split(), *words, f"--users={listed}")
    parts = f" {len(SEATED)} seated", " 1 by themselves", " 1 skipped", "servers of 1 listed people"
    wait_until_said(day, begin - time.time(), *parts)
    seated = day.servers()
    assert seated.keys() == {*LISTED, "zoe"}
    assert own.items() <= uids_of(seated).items()
    for name in SEATED:
        assert what_is_theirs(seated[name]) == (name, name, "quay.io/hub/other:1", day.scheduler)
        assert day.owner(environment_of(seated[name])["JUPYTERHUB_API_TOKEN"]) == name

    before = {part: day.pods(part)[0]["metadata"]["uid"] for part in ("hub", "proxy")}
    # The role is for everybody's servers now. That replaces the hub. Its proxy stays, and with it
    # what the hub knows of use.
    scopes = ",".join(scopes_of(of_hub))
    day.helm("upgrade", HUB, f"hub.loadRoles.roost-seating.scopes={{{scopes}}}")
    after = {part: day.pods(part)[0]["metadata"]["uid"] for part in ("hub", "proxy")}
    assert after["hub"] != before["hub"]
    assert after["proxy"] == before["proxy"]
    # So Zoe may be seated, and has a server.
    wait_until_said(day, SECONDS, f" {len(SEATED)} seated", " 2 by themselves")
    visits = day.start(*CAME)
    # Nobody waits for a start.
    assert [visit.pages for visit in visits] == [[] for _ in CAME]
    wait_until_said(day, SECONDS, f" {len(CAME)} came", " 1 seated", " 2 by themselves")
    wait_until(
        lambda: ABSENT not in day.servers(),
        begin + GRACE_SECONDS - time.time() + 60,
        "the server of who didn't come to be stopped",
        interval_seconds=2,
        explain=day.book,
    )
    assert time.time() >= begin + GRACE_SECONDS
    # Seating says so once the hub has answered. Some turns of seating later nobody else's is
    # stopped, and the absent's isn't started again.
    time.sleep(40)
    log = day.cluster.kubectl("logs", "deployment/roost-seating", f"--namespace={day.namespace}")
    assert re.findall(r"stopped the server of (\w+)", log) == [ABSENT]
    seated.pop(ABSENT)
    assert uids_of(day.servers()) == uids_of(seated)

    day.book("--cancel", "biology")
    day.helm("uninstall", ROOST)
    day.helm("uninstall", HUB)
    wait_until_gone(day, keep={"roost-bookings"})


def lines_of_the_page() -> tuple[str, str]:
    """The hub's values and Roost's that docs/seated.md gives, as they are written there."""
    page = (CHART.parent / "docs/seated.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```\n", page.partition("## Book")[0], re.DOTALL)
    return blocks[0], blocks[1]


def for_one_group(of_hub: str) -> str:
    """The hub's values with the narrower scope that the lines name."""
    narrow = re.sub(r"- servers +# or (servers!group=bio101), .*", r"- \1", of_hub)
    assert scopes_of(narrow)[-1] == "servers!group=bio101"
    return narrow


def scopes_of(of_hub: str) -> list[str]:
    scopes: list[str] = yaml.safe_load(of_hub)["hub"]["loadRoles"]["roost-seating"]["scopes"]
    return scopes


def wait_until_said(day: Day, timeout_seconds: float, *parts: str) -> None:
    """`roost book` says all of these of the class's people."""
    wait_until(
        lambda: all(part in day.book() for part in parts),
        timeout_seconds,
        f"seating to say{','.join(parts)}",
        interval_seconds=2,
        explain=day.book,
    )


def uids_of(servers: Mapping[str, JSONObject]) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in servers.items()}


def environment_of(pod: JSONObject) -> dict[str, str]:
    """The variables of a server's container that have a text."""
    container = pod["spec"]["containers"][0]
    return {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}


def what_is_theirs(pod: JSONObject) -> tuple[str, str, str, str]:
    """Of a server: its user, the folder of their home, image and scheduler."""
    container = pod["spec"]["containers"][0]
    (home,) = (mount for mount in container["volumeMounts"] if mount["name"] == "homes")
    user = environment_of(pod)["JUPYTERHUB_USER"]
    return user, home["subPath"], container["image"], pod["spec"]["schedulerName"]


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
        # Of a BinderHub's puller the operator decides: its users run built images.
        may_keep = day.below and "prePuller" in switch
        is_open = may_keep and f"keep it on there: {switch.partition('=')[0]}: " in said
        assert is_open or f"switch off there: {switch.replace('=', ': ')}" in said, said
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


def wait_until_gone(day: Day, release: str = "", keep: Set[str] = frozenset()) -> None:
    """Nothing is left of a release, or of both without their users, but for the lock of the hub's
    own scheduler. keep: names of objects that no release made.
    """
    for name in () if release else day.schedulers():
        day.cluster.api.delete(f"/api/v1/namespaces/{day.namespace}/pods/{name}")

    def left() -> list[str]:
        found = leftovers(day.cluster.api, day.namespace, frozenset({"user-scheduler-lock", *keep}))
        return [line for line in found if release in line]

    wait_until(lambda: not left(), SECONDS, "everything to be gone", explain=left)
