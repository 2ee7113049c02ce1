"""The phases of a start as spans that lie one after the other, for traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roost_lab.recorder.answers.pod_story import Row


def phases_of(moments: list[int | None], pulls: Iterable[Row]) -> Iterator[tuple[str, int, int, dict[str, object]]]:
    """Name, begin, end (µs) and facts of each phase, none across another: pulls lie within their containers' time.

    moments: when the pod was created, bound, started and ready; None: not, or not known.
    """
    names = ("waits for a node", "starts containers", "gets ready")
    begin_us = moments[0] or 0
    for name, moment_us in zip(names, moments[1:], strict=True):
        if moment_us is None:
            continue
        # A time in whole seconds may seem to come before an exact one that it follows.
        end_us = max(begin_us, moment_us)
        yield name, begin_us, end_us, {}
        if name == names[1]:
            pulled_us = begin_us
            for pull in pulls:
                took_us = pull["pull_and_wait_us"]
                if took_us is None:
                    continue
                from_us = min(max(pulled_us, pull["at_us"] - took_us), end_us)
                pulled_us = min(max(from_us, pull["at_us"]), end_us)
                facts = {"image": pull["image"], "bytes": pull["image_bytes"], "pull_us": pull["pull_us"]}
                yield "pulls an image", from_us, pulled_us, facts
        begin_us = end_us
