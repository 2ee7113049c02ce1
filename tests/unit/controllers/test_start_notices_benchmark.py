"""The benchmark of start notices reads what they say."""

from __future__ import annotations

import pytest

from benchmarks.start_notices import read_statements
from roost.controllers.start_notices.estimates import Estimate
from roost.controllers.start_notices.texts import DOWNLOAD, LONGER, with_estimate
from tests.e2e.spawn_page import Shown, Spawn

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("estimate", "about", "low", "high"),
    [
        ((12.6, 22.4, 25.6), 20.0, 15.0, 30.0),
        ((1.0, 4.0, 9.0), 4.0, 0.0, 10.0),
        ((1.0, 4.0, 4.9), 4.0, 0.0, 6.5),
        ((9.0, 10.0, 10.0), 10.0, 7.5, 12.5),
        ((55.0, 100.0, 300.0), 90.0, 55.0, 300.0),
    ],
)
def test_each_way_to_say_what_is_left_is_read(
    estimate: tuple[float, float, float], about: float, low: float, high: float
) -> None:
    messages = [
        "2026-11-23T13:21:00Z [Normal] Pulling image",
        "2026-11-23T13:21:03Z [Normal] " + with_estimate(DOWNLOAD, Estimate(*estimate)),
        "2026-11-23T13:21:03Z [Normal] " + LONGER,
    ]
    spawn = Spawn("ada", "jupyter-ada", [Shown(103.0, message) for message in messages], 100.0, 120.0)
    (said,) = read_statements(spawn, "image:1", known=True)
    assert (said.after, said.true) == (3.0, 17.0)
    assert (said.about, said.low, said.high) == (about, low, high)
    assert said.holds == (low <= 17.0 <= high)
    assert said.error == pytest.approx(abs(about - 17.0) / 17.0)
