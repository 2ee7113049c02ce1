"""How the users of images are counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roost.controllers.popular_images.popularity import Popularity, count_users, launch_from, users_by_use
from tests.popular_builders import (
    DIGEST,
    user,
    users,
)

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod

POPULAR = "quay.io/lab/popular:1"


RARE = "quay.io/lab/rare:1"


HOUR = 3600.0


def counted(*steps: tuple[float, list[Pod]], half_life: float = HOUR) -> Popularity:
    """Popularity after counting these pods at these moments."""
    popularity = Popularity()
    for seconds, pods in steps:
        popularity = count_users(popularity, pods, launch_from, half_life, seconds)
    return popularity


def by_image(popularity: Popularity) -> dict[str, float]:
    found: dict[str, float] = {}
    for use, amount in users_by_use(popularity).items():
        found[use.image] = found.get(use.image, 0.0) + amount
    return found


def test_a_running_pod_is_one_user() -> None:
    assert by_image(counted((0, users(3, POPULAR)))) == {POPULAR: 3}


def test_pods_that_do_not_run_are_no_users() -> None:
    pending = users(2, POPULAR, phase="Pending")
    going = [replace(pod, leaving=True) for pod in users(2, RARE)]
    assert by_image(counted((0, [*pending, *going]))) == {}


def test_a_user_that_left_counts_half_after_the_half_life() -> None:
    pods = users(4, POPULAR)
    assert by_image(counted((0, pods), (0, []), (HOUR, []))) == {POPULAR: 2}
    assert by_image(counted((0, pods), (0, []), (HOUR, []), (3 * HOUR, []))) == {POPULAR: 0.5}


def test_counting_often_gives_what_counting_seldom_gives() -> None:
    pods = users(4, POPULAR)
    often = counted((0, pods), *((60.0 * minute, []) for minute in range(121)))
    assert by_image(often)[POPULAR] == pytest.approx(by_image(counted((0, pods), (0, []), (2 * HOUR, [])))[POPULAR])


def test_a_new_leader_counts_all_that_run_again() -> None:
    pods = users(5, POPULAR)
    led_long = counted((0, pods), (HOUR, pods))
    assert by_image(counted((HOUR, pods))) == by_image(led_long)


def test_a_user_that_runs_long_does_not_fade() -> None:
    pods = users(2, POPULAR)
    assert by_image(counted((0, pods), (100 * HOUR, pods))) == {POPULAR: 2}


def test_a_jump_of_the_clock_backwards_raises_nobody() -> None:
    assert by_image(counted((HOUR, users(4, POPULAR)), (HOUR, []), (0, []))) == {POPULAR: 4}


def test_the_digest_is_that_of_most_pods_that_run() -> None:
    two = users(2, POPULAR, image_id=f"quay.io/lab/popular@{DIGEST}")
    other = user("moved", POPULAR, image_id=f"quay.io/lab/popular@sha256:{'e' * 64}")
    assert counted((0, [*two, other])).digests == {POPULAR: f"quay.io/lab/popular@{DIGEST}"}


@pytest.mark.parametrize("image_id", ["", "sha256:" + "a" * 64, f"mirror.example.org/popular@{DIGEST}"])
def test_an_id_that_cannot_be_pulled_is_no_digest(image_id: str) -> None:
    assert counted((0, users(2, POPULAR, image_id=image_id))).digests == {POPULAR: ""}
