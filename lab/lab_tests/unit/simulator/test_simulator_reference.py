"""The simulator against figures that others wrote down: a first replay of ten days, and a load test of mybinder.org.

The first replay was a throw-away model: 66 users a node, boot 210 s, a node leaves 10 minutes after its last user,
quota 100, endless disks, pulls counted and not timed. It is made again here, from that sentence alone, so that it can
be held against its ten days, and the simulator against it on fewer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pytest

from lab_tests.small_worlds import BEGIN, play, policy, without_pullers
from roost_lab.simulator.engine.results import QUEUE
from roost_lab.simulator.setup.assumptions import SESSIONS, Assumptions, Autoscaler
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.counts import InputCounts
from roost_lab.traces.reading import open_trace
from roost_lab.traces.synthetic import synthetic_attempts
from tests.harness.talk import say
from tests.recorded_data import LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

pytestmark = pytest.mark.slow

PER_NODE = 66
BOOT_SECONDS = 210.0
LINGER_SECONDS = 600.0
QUOTA = 100
DAYS = 2
ENDLESS: dict[str, Any] = {"node_disk_bytes": 0, "boot_sigma": 1e-9, "start_timeout_seconds": 3000.0}


@pytest.fixture(scope="module")
def ten_days() -> list[Attempt]:
    return list(open_trace([LAUNCHES], seed=1, counts=InputCounts()))


@dataclass
class ModelNode:
    """A node of the throw-away model."""

    joined_at: float
    users: int = 0
    images: set[str] = field(default_factory=set)
    empty_since: float | None = None


@dataclass
class Model:
    """The throw-away model. packs: the fullest node with room, else the emptiest."""

    packs: bool
    seed: int = 1
    admitted: int = 0
    pulls: int = 0
    node_hours: float = 0.0
    waited: int = 0

    def play(self, attempts: Iterable[Attempt]) -> Model:
        chance, sessions = Chance(self.seed), SESSIONS["mid"]
        events: list[tuple[float, int, str, Any]] = []
        order = 0
        nodes: list[ModelNode] = []
        waiting: list[Attempt] = []
        running: dict[str, int] = {}
        booting = 0
        now = 0.0

        def at(moment: float, what: str, argument: Any = None) -> None:
            nonlocal order
            order += 1
            heappush(events, (moment, order, what, argument))

        def place(attempt: Attempt) -> bool:
            rooms = [node for node in nodes if node.users < PER_NODE]
            if not rooms:
                return False
            node = (max if self.packs else min)(rooms, key=lambda one: one.users)
            node.users += 1
            node.empty_since = None
            self.pulls += attempt.image not in node.images
            node.images.add(attempt.image)
            rest = chance.log_normal("session", attempt.number, sessions.median_rest_minutes, sessions.sigma)
            at(now + 60 * (sessions.least_minutes + rest), "end", (node, attempt.repository))
            return True

        def happen(what: str, argument: Any) -> None:
            nonlocal booting
            if what == "end":
                node, repository = argument
                node.users -= 1
                running[repository] -= 1
                if not node.users:
                    node.empty_since = now
                    at(now + LINGER_SECONDS, "leave", (node, now))
            elif what == "join":
                booting -= 1
                nodes.append(ModelNode(now))
            elif argument[0].empty_since == argument[1] and len(nodes) > 1:
                nodes.remove(argument[0])
                self.node_hours += (now - argument[0].joined_at) / 3600
            while waiting and place(waiting[0]):
                waiting.pop(0)

        for attempt in attempts:
            if not nodes:
                nodes.append(ModelNode(attempt.moment))
            while events and events[0][0] <= attempt.moment:
                now, _, what, argument = heappop(events)
                happen(what, argument)
            now = attempt.moment
            if running.get(attempt.repository, 0) >= QUOTA:
                continue
            running[attempt.repository] = running.get(attempt.repository, 0) + 1
            self.admitted += 1
            if not place(attempt):
                self.waited += 1
                waiting.append(attempt)
                if len(waiting) > PER_NODE * booting:
                    booting += 1
                    at(now + BOOT_SECONDS, "join")
        self.node_hours += sum(now - node.joined_at for node in nodes) / 3600
        return self


@pytest.mark.parametrize(("packs", "pulls", "node_hours"), [(False, 9000, 1854), (True, 10070, 1199)])
def test_the_throw_away_model_made_again_gives_the_figures_that_were_written_down(
    ten_days: Sequence[Attempt], packs: bool, pulls: int, node_hours: int
) -> None:
    found = Model(packs).play(ten_days)
    say(f"\npacks={packs}: {found.pulls} pulls, {found.node_hours:.0f} node-hours, {found.waited} waited")
    # Between its seeds it was off by so much; ties are broken at another random.
    assert found.pulls == pytest.approx(pulls, rel=0.04)
    assert found.node_hours == pytest.approx(node_hours, rel=0.02)
    assert 1 - found.admitted / len(ten_days) == pytest.approx(0.20, abs=0.01)


def _spread() -> Any:
    """LeastAllocated and nothing else: kube-scheduler's default has ImageLocality, which saves a fifth of the pulls."""
    scores = ("NodeResourcesBalancedAllocation", "NodeAffinity", "InterPodAffinity", "NodeResourcesFit")
    resources = [{"name": "memory", "weight": 1}]
    profile = {
        "plugins": {
            "score": {
                "disabled": [{"name": name} for name in (*scores, "ImageLocality")],
                "enabled": [{"name": "NodeResourcesFit", "weight": 1}],
            }
        },
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {"scoringStrategy": {"type": "LeastAllocated", "resources": resources}},
            }
        ],
    }
    off = {"prePuller": {"enabled": False}}
    return policy("z2jh", json.dumps({"scheduler": {"profiles": {"user": profile}}, **off}))


@pytest.mark.parametrize("packs", [False, True])
def test_the_simulator_agrees_with_the_throw_away_model(ten_days: Sequence[Attempt], packs: bool) -> None:
    days = list(takewhile(lambda one: one.moment < ten_days[0].moment + DAYS * 86400, ten_days))
    model = Model(packs).play(days)
    result, world = play(days, without_pullers("z2jh") if packs else _spread(), Assumptions(**ENDLESS))
    say(
        f"\npacks={packs}, {DAYS} days: pulls {world.figures.pulls} (model {model.pulls}), cold {result.cold},"
        f" node-hours {result.node_hours:.1f} (model {model.node_hours:.1f}), refused {result.refused_by_repository},"
        f" admitted {result.admitted} (model {model.admitted}), waited {result.waited_for_node} (model {model.waited}),"
        f" bounds {result.bounds['node_hours']:.1f} {result.bounds['cold']:.0f}"
    )
    # The tolerances are those between the model's own seeds. The simulator is more than the model: starts and pulls
    # take time, so servers end later; an autoscaler looks every ten seconds; ties are broken otherwise. Its cold starts
    # are more than its pulls: whoever comes while the image is on its way waits, too, and pulls nothing.
    assert result.admitted == pytest.approx(model.admitted, rel=0.01)
    assert result.node_hours == pytest.approx(model.node_hours, rel=0.02)
    assert world.figures.pulls == pytest.approx(model.pulls, rel=0.04)
    assert result.cold >= world.figures.pulls
    # Few bursts make them all, and each lasts longer where nodes are asked for at a turn of a loop: seen +5 and +23 %.
    assert result.waited_for_node == pytest.approx(model.waited, rel=0.3)
    # Without placeholders nobody waits in the queue.
    assert result.waits[QUEUE].total == pytest.approx(0, abs=1)


# The warm set


def test_the_warm_set_alone_saves_a_third_of_cold_starts_on_a_made_up_day_at_packings_node_hours() -> None:
    packed, warm = (
        play(synthetic_attempts(1, days=1.0), without_pullers(name), Assumptions())[0]
        for name in ("z2jh", "warm-alone")
    )
    say(f"cold {packed.cold} and {warm.cold}, node-hours {packed.node_hours:.1f} and {warm.node_hours:.1f}")
    assert warm.cold < 0.75 * packed.cold
    assert warm.node_hours < 1.03 * packed.node_hours


# A load test


# mybinder.org's load test of July 2018: two rounds of about a hundred clicks of one repository within ten seconds; how
# long each took, in seconds: the least, the quartiles, the most.
LOAD_TEST = (9, 100, 138, 179, 573)


def _load_test(name: str, pulls: str, nodes: int, image_bytes: float, *, full: bool = False) -> list[float]:
    """The same figures, simulated: a hundred launches of one new image within ten seconds.

    full: other users leave room for 25, and nodes may come.
    """
    more: dict[str, Any] = {
        "min_nodes": nodes,
        "max_nodes": nodes + 4 * full,
        "pulls": pulls,
        "start_timeout_seconds": 3000.0,
    }
    if not full:
        more["autoscaler"] = Autoscaler.NONE
    others = [
        Attempt(number, BEGIN - 3000 + number / 10, f"b{number % 40}", f"b{number % 40}", int(1.6e9), 100_000.0)
        for number in range((nodes * PER_NODE - 25) * full)
    ]
    test = [Attempt(1000 + number, BEGIN + number / 10, "new", "new", int(image_bytes)) for number in range(100)]
    result, world = play([*others, *test], without_pullers(name), Assumptions(**more))
    assert result.given_up == 0
    totals = sorted(world.hub.totals[one.number] for one in test)
    return [totals[min(99, int(share * 100))] for share in (0, 0.25, 0.5, 0.75, 1)]


def test_a_load_test_of_one_new_image_is_bracketed_and_packing_on_slow_nodes_comes_near() -> None:
    """What is near, and what is not.

    Quartiles: nearest are slow pulls, users packed and 2 GB, 15, 30 and 38 % below the measured ones; faster disks or
    users that are spread make all quicker than it was, a cluster with room for 25 makes it slower, for most then wait
    for a boot: what was measured lies between. The number of nodes matters only where users are spread: packed, a
    hundred fill two of them. Not met: the least with slow pulls (9 s: in the second round nodes had the image; one
    round is played), and the most (573 s: how full the cluster was isn't known, nor what the hub's queue, its proxy and
    failed tries cost, none of which is simulated).
    """
    found = {}
    for pulls in ("fast", "middle", "slow"):
        for gigabytes in (1, 2):
            for nodes in (4, 8):
                for name in ("z2jh", "kube-default"):
                    found[pulls, gigabytes, nodes, name, ""] = _load_test(name, pulls, nodes, gigabytes * 1e9)
                found[pulls, gigabytes, nodes, "z2jh", "full"] = _load_test(
                    "z2jh", pulls, nodes, gigabytes * 1e9, full=True
                )
    for setting, figures in found.items():
        say(f"{' '.join(map(str, setting))} {[round(one) for one in figures]}")
    for index in (1, 2, 3):
        assert min(one[index] for one in found.values()) < LOAD_TEST[index] < max(one[index] for one in found.values())
    near = found["slow", 2, 8, "z2jh", ""]
    assert found["slow", 2, 4, "z2jh", ""] == near
    assert [near[index] / LOAD_TEST[index] for index in (1, 2, 3)] == pytest.approx([0.85, 0.70, 0.62], abs=0.05)
    assert near[0] > LOAD_TEST[0]
    assert near[4] < LOAD_TEST[4]
