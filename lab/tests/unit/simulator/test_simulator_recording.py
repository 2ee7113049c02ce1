"""A replay that is recorded: what `roost view` shows of it is what was there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.tests.recorded import empty_store
from lab.tests.small_worlds import BEGIN, attempt, policy, small, with_placeholders
from roost_lab.recorder.store.database import Store
from roost_lab.simulator.engine.entities import SimPod
from roost_lab.simulator.engine.pods import USER
from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import Policy
from roost_lab.simulator.sweep import recording
from roost_lab.simulator.sweep.recording import ReplayRecorder, record_files
from roost_lab.simulator.sweep.run import SweepError
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.synthetic import synthetic_attempts
from roost_lab.view.moment import ChangeKind, ClusterMoment, PodState
from roost_lab.view.reading import read_moment

MINUTE = 60.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return empty_store(tmp_path)


def play(
    store: Store, attempts: Sequence[Attempt], played: Policy, assumptions: Assumptions
) -> RunResult:
    return World(played, assumptions, 1, journal=ReplayRecorder(store)).play(attempts)


def look(store: Store, after_seconds: float) -> ClusterMoment:
    found = read_moment(store, round((BEGIN + after_seconds) * 1e6), 2**62)
    assert found is not None
    return found


class Sampled(World):
    """A world that notes now and then what there is."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.seen: dict[float, Any] = {}

    def sample(self, _: object) -> None:
        def name_of(pod: SimPod) -> str:
            launched = pod.launch.attempt if pod.launch is not None else pod.builds
            return (
                pod.key
                if launched is None
                else f"{pod.state.namespace}/{pod.kind}-{launched.number}"
            )

        nodes = {
            name: (
                sorted(
                    (name_of(pod), pod.ready_at is not None or pod.kind != USER)
                    for pod in node.pods.values()
                ),
                node.state.is_usable,
                len(node.state.images),
            )
            for name, node in self.nodes.items()
        }
        self.seen[self.now] = (
            nodes,
            sorted(name_of(pod) for pod in self.sim_pods.values() if pod.node is None),
        )


@pytest.mark.slow
def test_at_any_moment_the_record_has_the_nodes_and_pods_that_were_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "BATCH", 97)
    assumptions = Assumptions(max_nodes=4)
    world = Sampled(policy("roost"), assumptions, 1, journal=ReplayRecorder(store))
    for number in range(1, 90):
        # Beside whole seconds: what happens within the same µs may be in either order.
        world.at(BEGIN + number * 97.123, world.sample)
    result = world.play(synthetic_attempts(1, 0.1, 30_000, BEGIN))
    with store.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT kind, count(*) FROM preemption GROUP BY kind"
        ).mappings()
        removed: dict[str, int] = {row["kind"]: row["count(*)"] for row in rows}
    assert removed["preempted"] == result.placeholder_preemptions + result.users_preempted > 0
    assert removed["evicted"] >= result.moves > 0
    assert len(world.seen) == 89
    for at, (nodes, pending) in world.seen.items():
        moment = look(store, at - BEGIN)
        assert {
            node.name: (
                sorted((pod.name, pod.state == PodState.RUNNING) for pod in node.pods),
                node.state == "ready",
                node.images or 0,
            )
            for node in moment.nodes
        } == nodes
        assert sorted(pod.name for pod in moment.pending) == pending
    assert any(pending for _, pending in world.seen.values())


def test_a_pre_emption_a_wait_and_a_pull_are_recorded(store: Store) -> None:
    world = small(room=2, nodes=1, max_nodes=3, autoscaler=Autoscaler.CLUSTER_AUTOSCALER)
    attempts = [attempt(0, 0, "a"), attempt(1, MINUTE, "owner/b"), attempt(2, 20 * MINUTE, "a")]
    play(store, attempts, with_placeholders("z2jh-placeholders-packed", 1), world)
    preempted = look(store, MINUTE + 1.5)
    assert [
        (change.kind, change.by_name)
        for change in preempted.changes
        if change.kind == ChangeKind.PREEMPTED
    ] == [(ChangeKind.PREEMPTED, "binder/user-1")]
    # The placeholder that was made anew waits for a node.
    (waiting,) = preempted.pending
    assert waiting.kind == "placeholder"
    assert "nodes are available" in waiting.reason
    states = {pod.name: (pod.state, pod.image) for pod in look(store, MINUTE + 5).nodes[0].pods}
    state, image = states["binder/user-1"]
    assert state == PodState.PULLING
    assert image.startswith("r2d.invalid/owner/b:")
    assert look(store, 19 * MINUTE).nodes[0].held == {image, states["binder/user-0"][1]}


def test_a_launch_has_one_name_under_every_policy(tmp_path: Path) -> None:
    attempts = list(synthetic_attempts(1, 0.01, 30_000, BEGIN))
    names = []
    for number, name in enumerate(("z2jh-placeholders-packed", "roost")):
        (tmp_path / name).mkdir()
        store = empty_store(tmp_path / name)
        # The second one's placeholders take numbers of their own.
        play(store, attempts, with_placeholders(name, 1 + 9 * number), Assumptions(max_nodes=4))
        with store.reading() as connection:
            pods = connection.exec_driver_sql(
                "SELECT name, min(created_us) FROM pod WHERE pod_class = 'user' GROUP BY 1"
            )
            names.append({row[0]: row[1] for row in pods})
    assert (
        names[0] == names[1] == {f"user-{one.number}": round(one.moment * 1e6) for one in attempts}
    )


def test_what_is_in_the_folder_is_never_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "replays"
    files = record_files(folder, ["roost", "values/tomorrow"])
    assert files == [folder / "roost.db", folder / "values-tomorrow.db"]
    files[0].write_bytes(b"mine")
    with pytest.raises(SweepError, match=r"roost\.db exists"):
        record_files(folder, ["z2jh", "roost"])
    with pytest.raises(SweepError, match="two policies would have one file"):
        record_files(folder, ["my prod", "my-prod"])
    with pytest.raises(SweepError, match="File name too long"):
        record_files(folder, ["n" * 300])
    (tmp_path / "file").touch()
    with pytest.raises(SweepError, match="File exists"):
        record_files(tmp_path / "file", [])
