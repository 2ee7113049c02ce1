"""Which people whom the ceiling leaves without seats are one class, and which are the next."""

import pytest

from roost_core.placement import headroom_cut
from roost_core.placement.headroom_cut import CutClass, cut_classes
from roost_core.placement.headroom_history import History
from roost_core.placement.headroom_worth import worth_of


@pytest.mark.parametrize(
    ("cuts", "classes"),
    [
        ({}, []),
        ({10: (30, 0)}, [10]),
        # A class is where the most are missing, and at the first of its equal minutes.
        ({10: (10, 0), 15: (30, 0), 20: (30, 0), 25: (29, 0)}, [15]),
        # Of 40 people with 30 seats fewer are missing than of 20 people with 5.
        ({10: (40, 30), 15: (20, 5)}, [15]),
        ({10: (20, 5), 15: (40, 30)}, [10]),
        # Another class begins after more than twenty minutes without anybody missing ...
        ({10: (30, 0), 30: (31, 0)}, [30]),
        ({10: (30, 0), 35: (31, 0)}, [10, 35]),
        ({10: (30, 0), 25: (20, 0), 45: (31, 0)}, [45]),
        # ... or once fewer than half of the most were, and more are again.
        ({10: (30, 0), 15: (14, 0), 20: (15, 0)}, [10, 20]),
        ({10: (30, 0), 15: (15, 0), 20: (16, 0)}, [10]),
        ({10: (30, 0), 15: (14, 0), 20: (14, 0), 25: (13, 0)}, [10]),
        (
            {10: (30, 0), 15: (14, 0), 20: (16, 0), 25: (20, 0), 30: (9, 0), 35: (10, 0)},
            [10, 25, 35],
        ),
        # 40 people with 30 seats are ten who are missing, fewer than half of 30.
        ({10: (30, 0), 15: (40, 30), 20: (41, 30)}, [10, 20]),
    ],
)
def test_people_who_come_close_together_are_one_class(
    cuts: dict[int, tuple[int, int]], classes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """cuts: how many people there are, and seats for them, by the minute."""

    def cut_at(_history: object, minute: int, *_more: object, **_worth: object) -> CutClass | None:
        return CutClass(minute, *cuts[minute], 1.0) if minute in cuts else None

    monkeypatch.setattr(headroom_cut, "_cut_at", cut_at)
    worth = worth_of(10, 20, 6)
    cheap = worth_of(1, 20, 6)
    found = list(cut_classes(History(), 0, 60, "UTC", worth=cheap, uncut=worth))
    assert [each.minute for each in found] == classes
    for each in found:
        people, seats = cuts[each.minute]
        assert each.missing == people - seats
    # Where the ceiling cuts nothing, nobody is missing.
    assert list(cut_classes(History(), 0, 60, "UTC", worth=worth, uncut=worth)) == []
