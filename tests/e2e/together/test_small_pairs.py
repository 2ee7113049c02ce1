"""Dozens of small drawn cases on a real control plane, each without Roost and with it, judged pod
by pod.

One case again: ROOST_SMALL_SEEDS=7. Three waves, for PriorityClasses are the cluster's: none, two,
and four of them.
"""

import contextlib
import os
from collections.abc import Iterator

import pytest

from tests.e2e.small_pairs import DRIVER, TEAM, Wave, small, values_for
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import own_cluster
from tests.harness.scheduler import start_scheduler
from tests.harness.talk import say
from tests.judge.cases import GPU, PRIORITIES, Case
from tests.stack import Stack

pytestmark = pytest.mark.e2e

A_WAVE = 12
# Tenths of a second decide it: room falls free, and each of two schedulers has somebody for it.
# Play it by its number.
RACES = {"drawn-19"}


def waves() -> list[list[Case]]:
    """Cases by how many classes they have."""
    named = os.environ.get("ROOST_SMALL_SEEDS", "")
    cases = [small(seed) for seed in (map(int, named.split(",")) if named else range(200))]
    sorted_out = [
        [case for case in cases if len(case.priorities) == count]
        for count in (0, len(PRIORITIES), 4)
    ]
    return [
        found if named else [one for one in found[:A_WAVE] if one.name not in RACES]
        for found in sorted_out
    ]


WAVES = waves()


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane with the cluster's own scheduler and one release of Roost, which serves one
    side of each case.
    """
    for cluster in own_cluster(request):
        selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
        }
        cluster.api.create({**body, "spec": {"selectors": selectors, "extendedResourceName": GPU}})
        cluster.create_namespace(TEAM)
        values = values_for(case for wave in WAVES for case in wave)
        with contextlib.ExitStack() as stack:
            stack.enter_context(start_scheduler(cluster))
            stack.enter_context(
                Stack(cluster, cluster.create_namespace(), values, controllers=True)
            )
            yield cluster


@pytest.mark.parametrize("number", range(len(WAVES)))
def test_nobody_fares_worse_in_small_drawn_cases(number: int, cluster: ControlPlane) -> None:
    if not WAVES[number]:
        pytest.skip("no seed that was named has so many PriorityClasses")
    with Wave(cluster, WAVES[number]) as wave:
        victims = wave.play()
    told = []
    for case, (plain, roost) in zip(wave.cases, wave.pairs, strict=True):
        found = victims[case.name]
        say(
            f"{case.name}: {sum(not fate.refused for fate in roost.fates.values())} pods;"
            f" {'; '.join(map(str, found))}"
        )
        if any(not victim.is_drift for victim in found):
            told += [
                case.name,
                *map(str, found),
                "without:",
                *plain.journal,
                "with:",
                *roost.journal,
            ]
    assert told == [], "\n".join(told)
