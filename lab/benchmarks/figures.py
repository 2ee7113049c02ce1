"""Turn samples of several runs into medians with their spread, ratios within each run, and tables.

Owns what a figure looks like. A ratio is taken within a round and then summarised over the rounds:
what slows a whole round down, on a machine that others share, leaves it alone.
"""

from __future__ import annotations

import platform
import sys
import time
from math import comb
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Of an interval for the median.
CONFIDENCE: Final = 0.95


class Interval(NamedTuple):
    """The median of samples, and an interval for the median of what they are drawn from."""

    middle: float
    low: float
    high: float


def interval(samples: Sequence[float]) -> Interval:
    """The narrowest pair of samples, equally far from both ends, that holds the median with
    CONFIDENCE.

    Needs no assumption of how samples are distributed. Of ten samples these are the second and the
    ninth (98 %); of fewer than six no pair does, and these are the least and the greatest.
    """
    ordered = sorted(samples)
    number = len(samples)
    cut = 0
    outside = 2 / 2**number
    while cut + 1 < number / 2:
        outside += 2 * comb(number, cut + 1) / 2**number
        if outside > 1 - CONFIDENCE:
            break
        cut += 1
    return Interval(median(ordered), ordered[cut], ordered[number - 1 - cut])


def spread(samples: Iterable[float], digits: int = 3) -> str:
    """`median (lowest to highest)` to so many significant digits; "-" without samples."""
    found = list(samples)
    if not found:
        return "-"
    return (
        f"{figure(median(found), digits)} ({figure(min(found), digits)} to"
        f" {figure(max(found), digits)})"
    )


def figure(number: float, digits: int = 3) -> str:
    """A number to so many significant digits, without exponents."""
    if number == 0:
        return "0"
    whole = len(str(int(abs(number)))) if abs(number) >= 1 else 0
    return f"{number:.{max(0, digits - whole)}f}"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours to theirs, round by round."""
    return [mine / peer for mine, peer in zip(ours, theirs, strict=True) if peer]


def quantile(samples: Iterable[float], share: float) -> float:
    """The sample below which `share` of them lie; 0 without samples."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def verdict(ratio: float, *, at_least: float | None = None, at_most: float | None = None) -> str:
    """The goal in words, and whether the median ratio reaches it."""
    if at_least is not None:
        return f"goal >= {at_least:g}x: {'reached' if ratio >= at_least else 'MISSED'}"
    if at_most is not None:
        return f"goal <= {at_most:g}x: {'reached' if ratio <= at_most else 'MISSED'}"
    return ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, aligned for reading as plain text too."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    printed = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    printed.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(printed)


def machine() -> str:
    """What this runs on, in one line."""
    described = _lines("/proc/cpuinfo")
    model = next(
        (line.partition(":")[2].strip() for line in described if line.startswith("model name")), ""
    )
    cores = sum(line.startswith("processor") for line in described)
    load = next(iter(_lines("/proc/loadavg")), "?").split()[0]
    moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    processor = model or platform.machine()
    return (
        f"{moment} UTC, {cores} cores ({processor}), load before {load}, Python"
        f" {platform.python_version()}"
    )


def say(text: str) -> None:
    """Progress, to stderr: stdout holds the figures only."""
    print(text, file=sys.stderr, flush=True)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
