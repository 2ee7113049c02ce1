"""Pushes to repositories make new images."""

import pytest

from lab.tests.trace_lines import NOON
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.pushes import with_pushes

pytestmark = pytest.mark.slow


def attempts_of(days: int, repositories: int = 200) -> list[Attempt]:
    return [
        Attempt(number, NOON + hour * 3600, f"GitHub/o/{one}", f"GitHub/o/{one}/master")
        for number, (hour, one) in enumerate((h, r) for h in range(0, days * 24, 6) for r in range(repositories))
    ]


def test_pushes_make_new_images_at_their_rate() -> None:
    attempts = attempts_of(20)
    pushed = list(with_pushes(attempts, Chance(1), 0.1))
    images = {attempt.image for attempt in pushed}
    # 200 repositories, 19.75 days from the first launch to the last.
    assert len(images) == pytest.approx(200 + 200 * 19.75 * 0.1, rel=0.12)
    assert [attempt[:3] for attempt in pushed] == [attempt[:3] for attempt in attempts]


def test_an_image_never_comes_back_once_its_repository_was_pushed_to() -> None:
    seen: dict[str, list[str]] = {}
    for attempt in with_pushes(attempts_of(20), Chance(1), 0.5):
        images = seen.setdefault(attempt.repository, [])
        if not images or images[-1] != attempt.image:
            images.append(attempt.image)
    assert all(len(set(images)) == len(images) for images in seen.values())


@pytest.mark.parametrize("image", ["GitHub/o/r@" + "a" * 40, "Zenodo/10.5281/zenodo.1"])
def test_images_that_are_fixed_are_not_pushed_to(image: str) -> None:
    attempts = [attempt._replace(image=image) for attempt in attempts_of(5, 3)]
    assert list(with_pushes(attempts, Chance(1), 1.0)) == attempts


def test_no_pushes_change_nothing_and_impossible_ones_are_refused() -> None:
    attempts = attempts_of(2, 3)
    assert list(with_pushes(attempts, Chance(1), 0.0)) == attempts
    with pytest.raises(ValueError, match="probabilities"):
        list(with_pushes(attempts, Chance(1), 1.5))
