"""Format times, durations and sizes for people."""

from typing import Final

from roost_lab.pages.dates import as_date
from roost_lab.units import HOUR_SECONDS, US

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def show_time(at_us: int) -> str:
    """A time for people: UTC, to the second."""
    return as_date(at_us).strftime("%Y-%m-%d %H:%M:%S UTC")


def show_span(span_us: int) -> str:
    """A duration for people, as `show_seconds`; a negative one is none."""
    return show_seconds(max(0, span_us) / US)


def show_range(least_us: int, most_us: int) -> str:
    """A duration of which bounds are known: at most 970 ms, 2.1 s to 3.1 s; 12 min, where a second
    doesn't matter.
    """
    if least_us == most_us or most_us >= 60 * US:
        return show_span(most_us)
    return (
        f"{show_span(least_us)} to {show_span(most_us)}"
        if least_us > 0
        else f"at most {show_span(most_us)}"
    )


def show_seconds(seconds: float) -> str:
    """A duration for people: 350 ms, 4.2 s, 3 min 5 s, 2 h 10 min."""
    # Sums of many equal durations must look like exact ones.
    seconds = round(seconds, 9)
    if round(seconds, 1) < 60:
        # From 0.9995 on it would be 1000 ms.
        if 0 < seconds < 0.9995:
            return f"{seconds * 1000:.0f} ms"
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if round(seconds) < HOUR_SECONDS:
        return _show_two(round(seconds), "min", "s")
    return _show_two(round(seconds / 60), "h", "min")


def _show_two(amount: int, large: str, small: str) -> str:
    """60 of the small unit make a large one; no small ones are left out."""
    number, rest = divmod(amount, 60)
    return f"{number} {large} {rest} {small}" if rest else f"{number} {large}"


def show_bytes(amount: int) -> str:
    """A size for people, in powers of 1024."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("the loop returns")


def plural(number: int, noun: str) -> str:
    """1 pod, 2 pods, 1,234 pods."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_plain(text: str) -> str:
    """A text from the cluster as one line for a terminal: control characters become replacement
    marks.
    """
    if text.isprintable():
        return text
    return "".join(map(_show_plain_character, text))


def _show_plain_character(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else _REPLACEMENT
