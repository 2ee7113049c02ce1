"""Model pushes to repositories, which traces before version 4 don't show: each push makes a new
image.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.units import DAY_SECONDS

# Between an image's name and the time of its push, in whole seconds since 1970.
PUSHED: Final = "+"
_NAMED: Final = f"{{}}{PUSHED}{{}}".format
# Commits never change, nor do deposits of these archives.
_FIXED: Final = re.compile(
    r".*[@/:][0-9a-f]{40}|(Zenodo|Figshare|Dataverse|SWHID)/.*", re.ASCII | re.DOTALL
)


def with_pushes(
    attempts: Iterable[Attempt],
    chance: Chance,
    pushes_per_day: float,
    named: Callable[[str, int], str] = _NAMED,
) -> Iterator[Attempt]:
    """The attempts, with the images that pushes to their repositories would have made.

    pushes_per_day: probability that a repository is pushed to on a day, from its first attempt on;
    0 changes nothing. named: what a push makes of an image, and of its Unix time in whole seconds.
    Images that name a commit, and attempts of no repository, stay. Memory grows with the
    repositories, not with time.
    """
    if not pushes_per_day:
        yield from attempts
        return

    def push_on(repository: str, day: int) -> float:
        """The moment of a day's push; 0.0: there is none."""
        key = f"{repository}\0{day}"
        if chance.uniform("push", key) >= pushes_per_day:
            return 0.0
        return (day + chance.uniform("push moment", key)) * DAY_SECONDS

    # Repository -> the day of its last attempt, the moment of the last push before that day, and
    # that of the day's own push. 0.0: there is none.
    known: dict[str, tuple[int, float, float]] = {}
    for attempt in attempts:
        repository = attempt.repository
        if not repository or _FIXED.fullmatch(attempt.image):
            yield attempt
            continue
        today = int(attempt.moment // DAY_SECONDS)
        if repository in known:
            day, before, on_day = known[repository]
        else:
            day = today
            before = 0.0
            on_day = push_on(repository, today)
        while day < today:
            day += 1
            before = on_day or before
            on_day = push_on(repository, day)
        known[repository] = day, before, on_day
        pushed = on_day if 0.0 < on_day <= attempt.moment else before
        yield attempt._replace(image=named(attempt.image, int(pushed))) if pushed else attempt
