"""Format times, durations and sizes for people."""

from __future__ import annotations

from typing import Final

from roost.pages.dates import US, as_date

_HOUR_SECONDS: Final = 3600
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def show_time(at_us: int) -> str:
    """A time for people: UTC, to the second."""
    return as_date(at_us).strftime("%Y-%m-%d %H:%M:%S UTC")


def show_span(span_us: int) -> str:
    """A duration for people: 350 ms, 4.2 s, 3 min 5 s, 2 h 10 min."""
    if span_us < US:
        return f"{max(0, span_us) // 1000} ms"
    seconds = span_us / US
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    minutes, left_seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left_seconds} s" if left_seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def show_bytes(amount: int) -> str:
    """A size for people, in powers of 1024."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("the loop returns")


def show_plain(text: str) -> str:
    """A text from the cluster as one line for a terminal: control characters become replacement marks."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else _REPLACEMENT for char in text)


def show_seconds(seconds: float) -> str:
    """A duration for people, short: 350 ms, 4.2 s, 3:05 min, 2:10 h."""
    # Sums of many equal durations must look like exact ones.
    seconds = round(seconds, 9)
    if round(seconds, 1) < 60:
        return f"{seconds * 1000:.0f} ms" if 0 < seconds < 0.9995 else f"{seconds:.1f} s".replace(".0 s", " s")
    small, unit = (seconds, "min") if round(seconds) < _HOUR_SECONDS else (seconds / 60, "h")
    return f"{round(small) // 60}:{round(small) % 60:02} {unit}"
