"""How users of images are counted, and how they fade."""

import pytest

from roost.controllers.popular_images.demand import Demand, count_users
from roost_core.objects.pod import Pod
from tests.popular_builders import user

HOUR = 3600.0
IMAGE = "quay.io/lab/a:1"


def counted(*steps: tuple[float, list[Pod]]) -> dict[str, float]:
    """Users by image after counting at each of these times, with a half-life of an hour."""
    demand = Demand()
    for seconds, pods in steps:
        demand, _ = count_users(demand, pods, lambda _pod: True, HOUR, seconds)
    return dict(demand.users)


def test_a_running_pod_is_one_user_of_each_of_its_images_and_others_are_none() -> None:
    pods = [user("a", IMAGE), user("b", "lab/b"), user("c", IMAGE, phase="Pending"), user("d", IMAGE, phase="Failed")]
    assert counted((0, pods)) == {IMAGE: 1, "docker.io/lab/b:latest": 1}


def test_a_user_that_left_counts_half_after_the_half_life_however_often_users_are_counted() -> None:
    here = [user("a", IMAGE), user("b", IMAGE)]
    seldom = counted((0, here), (0, here[:1]), (HOUR, here[:1]))
    often = counted((0, here), *[(seconds, here[:1]) for seconds in range(0, 3601, 100)])
    assert seldom == pytest.approx({IMAGE: 1.5})
    assert often == pytest.approx(seldom)
    assert counted((0, here), (1, []), (1000 * HOUR, [])) == {}


def test_a_jump_of_the_clock_backwards_raises_nobody_and_a_user_that_runs_long_does_not_fade() -> None:
    assert counted((5 * HOUR, [user("a", IMAGE)]), (5 * HOUR, []), (0, [])) == {IMAGE: 1}
    assert counted((0, [user("a", IMAGE)]), (100 * HOUR, [user("a", IMAGE)])) == {IMAGE: 1}
