"""Format times, durations and sizes for people."""

from typing import Final

from roost_lab.pages.dates import as_date
from roost_lab.units import HOUR_SECONDS, US

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def show_time(at_us: int) -> str:
    """A time for people, in UTC, to the second. at_us: µs since 1970."""
    return as_date(at_us).strftime("%Y-%m-%d %H:%M:%S UTC")


def show_span(span_us: int) -> str:
    """A duration for people, as `show_seconds`; a negative one is shown as 0 s."""
    return show_seconds(max(0, span_us) / US)


def show_span_range(least_us: int, most_us: int) -> str:
    """A duration of which only bounds are known: "at most 970 ms", "2.1 s to 3.1 s".

    From a minute on, a second doesn't matter: then only the upper bound is shown, "12 min".
    """
    if least_us == most_us or most_us >= 60 * US:
        return show_span(most_us)
    if least_us > 0:
        return f"{show_span(least_us)} to {show_span(most_us)}"
    return f"at most {show_span(most_us)}"


def show_seconds(seconds: float) -> str:
    """A duration for people: 350 ms, 4.2 s, 3 min 5 s, 2 h 10 min."""
    # Without rounding errors, which a sum of many durations has.
    seconds = round(seconds, 9)
    if round(seconds, 1) < 60:
        # 0.9995 s and more would be rounded to 1000 ms.
        if 0 < seconds < 0.9995:
            return f"{seconds * 1000:.0f} ms"
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if round(seconds) < HOUR_SECONDS:
        return _show_two(round(seconds), "min", "s")
    return _show_two(round(seconds / 60), "h", "min")


def _show_two(amount: int, large: str, small: str) -> str:
    """An amount of the small unit, written in both units; 60 of the small one make a large one."""
    number, rest = divmod(amount, 60)
    if rest:
        return f"{number} {large} {rest} {small}"
    return f"{number} {large}"


def show_bytes(amount: int) -> str:
    """A number of bytes for people, in powers of 1024: 512 B, 1.5 KiB, 36 GiB."""
    units = ["B", "KiB", "MiB", "GiB"]
    size = float(amount)
    while abs(size) >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    decimals = 0 if size >= 10 or units[0] == "B" else 1
    return f"{size:.{decimals}f} {units[0]}"


def plural(number: int, noun: str) -> str:
    """1 pod, 2 pods, 1,234 pods."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_plain(text: str) -> str:
    """A text from the cluster as one line that is safe in a terminal.

    Line ends and other spaces become plain spaces; other characters that aren't printable become
    U+FFFD.
    """
    if text.isprintable():
        return text
    return "".join(_show_plain_character(character) for character in text)


def _show_plain_character(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else _REPLACEMENT
