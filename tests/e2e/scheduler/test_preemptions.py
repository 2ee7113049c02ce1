"""Nobody waits for the scheduler's flush once their placeholder has gone.

lab/benchmarks/preemptions.py in short.
"""

from collections.abc import Iterator

import pytest

from benchmarks.preemptions import as_rendered, run_round, set_up
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
NODES, PLACEHOLDERS_PER_NODE, PREEMPTIONS = 10, 8, 100


@pytest.fixture
def lone_cluster() -> Iterator[ControlPlane]:
    """A cluster without other tests' pods, which would wake a scheduler that this test wants to see
    idle.
    """
    cluster = ControlPlane(controllers=())
    with or_give_up():
        cluster.start()
    yield cluster
    cluster.stop()


def test_no_user_waits_ten_seconds_once_their_placeholder_has_gone(
    lone_cluster: ControlPlane,
) -> None:
    set_up(lone_cluster, nodes=NODES, placeholders_per_node=PLACEHOLDERS_PER_NODE)
    setting = as_rendered(lone_cluster.minor)
    assert "--feature-gates=SchedulerAsyncPreemption=false" in setting.flags
    outcome = run_round(
        lone_cluster,
        setting,
        preemptions=PREEMPTIONS,
        placeholders=NODES * PLACEHOLDERS_PER_NODE,
        seed=1,
        most_seconds=60,
    )
    assert outcome.preempted >= PREEMPTIONS
    assert len(outcome.waits) >= PREEMPTIONS * 0.9, (
        "users and the placeholders that went for them are told apart"
    )
    assert outcome.stuck == []
    assert outcome.parked == []
    assert outcome.asynchronous == 0, "the flags of the rendered Deployment count"
