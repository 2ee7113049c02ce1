"""Read assumptions from text, reject impossible worlds, and list assumptions with their meaning.

The meaning and source of an assumption are the comment above it in assumptions.py.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any, Final, NamedTuple, get_type_hints

from generator.faults import Fault
from roost_core.objects.quantities import parse_quantity
from roost_lab.simulator.setup import assumptions as module
from roost_lab.simulator.setup.assumptions import (
    KUBERNETES_MINORS,
    PULLS,
    SESSIONS,
    Assumptions,
    Autoscaler,
)

# Where a fault is, if it isn't of an option.
PLACE: Final = "assumptions"
# A line of the dataclass that declares a field.
_FIELD: Final = re.compile(r"    (?P<name>[a-z0-9_]+): ")
# One in 10,000 values of a normal distribution is more than so many sigmas above the mean.
_LARGE_SIGMAS: Final = 3.719
_FLAGS: Final = {"true": True, "yes": True, "false": False, "no": False}
# Field -> its least accepted value, of those whose least isn't 0.
_LEAST: Final[Mapping[str, float]] = {
    "status_images": -1,
    "boot_median_seconds": 0.001,
    "build_cold_median_seconds": 0.001,
    "build_cold_p90_seconds": 0.001,
    "build_warm_median_seconds": 0.001,
    "autoscaler_loop_seconds": 0.1,
    "base_families": 1,
    "compression_ratio": 1,
    "gc_period_seconds": 1,
    "image_median_bytes": 1,
    "max_nodes": 1,
    "node_cpu_millicores": 1,
    "node_memory_bytes": 1,
    "node_pods": 1,
    "parallel_pulls": 1,
    "start_timeout_seconds": 1,
    "user_memory_bytes": 1,
}
# Field -> its greatest accepted value, of those that have one.
_GREATEST: Final[Mapping[str, float]] = {
    "build_changed_share": 1,
    "environment_share": 1,
    "gc_high": 1,
    "gc_low": 1,
    "pushes_per_day": 1,
    "shared_share": 1,
    "stopped_share": 1,
    "unneeded_utilisation": 1,
    "answer_sigma": 3,
    "boot_sigma": 3,
    "image_sigma": 3,
}
# Field -> the texts that it may have.
_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "kubernetes_minor": KUBERNETES_MINORS,
    "sessions": tuple(SESSIONS),
    "pulls": tuple(PULLS),
    "autoscaler": tuple(autoscaler.value for autoscaler in Autoscaler),
}


class AssumptionsError(Exception):
    """The assumptions contradict each other or are out of range. `faults` holds every reason."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in faults))


class AssumptionRow(NamedTuple):
    """One assumption, for people."""

    name: str
    value: str
    # Whether it differs from the default.
    is_changed: bool
    # What it is, and where it comes from.
    about: str


def read_assumption(text: str, place: str) -> tuple[str, Any]:
    """Name and value of `name=value`; amounts may be quantities (36500M, 1Ti).

    place: the option that has the text, for faults. Raises AssumptionsError.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    value = value.strip()
    # Field -> its type.
    kinds = get_type_hints(Assumptions)
    if not equals:
        raise AssumptionsError([Fault(place, 0, "", repr(text), "NAME=VALUE")])
    if name not in kinds:
        near = get_close_matches(name, kinds, 2, 0.6)
        fix = f"Did you mean {' or '.join(near)}?" if near else f"Known ones: {', '.join(kinds)}."
        found = "an unknown assumption"
        raise AssumptionsError([Fault(place, 0, name, found, "one of the simulator's", fix)])
    try:
        return name, _read(kinds[name], value, _CHOICES.get(name))
    except ValueError:
        expected = " or ".join(_CHOICES.get(name, ())) or _expected(kinds[name])
        raise AssumptionsError([Fault(place, 0, name, repr(value), expected)]) from None


def make_assumptions(values: Mapping[str, Any], place: str) -> Assumptions:
    """The usual assumptions with these values. place: where they come from, for faults.

    Raises AssumptionsError with every value out of range, or else with every contradiction.
    """
    made = replace(Assumptions(), **values)
    # Values out of range would contradict others, too.
    mistakes = list(_out_of_range(made)) or list(_contradictions(made))
    if mistakes:
        raise AssumptionsError([Fault(place, 0, *mistake) for mistake in mistakes])
    return made


def check_images(assumptions: Assumptions, image: str, disk_bytes: int) -> None:
    """Check that a node's disk holds the largest image of the trace.

    image: its name. disk_bytes: its size. Raises AssumptionsError where it doesn't fit.
    """
    if 0 < assumptions.node_disk_bytes < disk_bytes:
        expected = f"at least {disk_bytes:,}, which the trace says of image {image}; or 0: endless"
        found = show_assumption(assumptions.node_disk_bytes)
        raise AssumptionsError([Fault(PLACE, 0, "node_disk_bytes", found, expected)])


def list_assumptions(assumptions: Assumptions) -> list[AssumptionRow]:
    """Every assumption with its value, in the order in which assumptions.py declares them."""
    usual = Assumptions()
    rows = []
    for name, comment in _comments().items():
        value = getattr(assumptions, name)
        is_changed = value != getattr(usual, name)
        rows.append(AssumptionRow(name, show_assumption(value), is_changed, comment))
    return rows


# The assumption's name, what was found, what is expected, and a fix, which may be "".
_Mistake = tuple[str, str, str, str]


def _out_of_range(assumptions: Assumptions) -> Iterable[_Mistake]:
    for name, value in asdict(assumptions).items():
        if name in _CHOICES:
            if value not in _CHOICES[name]:
                yield name, repr(str(value)), " or ".join(_CHOICES[name]), ""
            continue
        least = _LEAST.get(name, 0)
        greatest = _GREATEST.get(name, math.inf)
        if not math.isfinite(value) or not least <= value <= greatest:
            expected = f"a number from {least:g} to {greatest:g}"
            if greatest == math.inf:
                expected = f"at least {least:g}"
            yield name, f"{value:g}", expected, ""


def _contradictions(assumed: Assumptions) -> Iterable[_Mistake]:
    shown = {name: show_assumption(value) for name, value in asdict(assumed).items()}
    if assumed.min_nodes > assumed.max_nodes:
        expected = f"at most max_nodes, which is {shown['max_nodes']}"
        yield "min_nodes", shown["min_nodes"], expected, ""
    for pod, node in (
        ("user_cpu_millicores", "node_cpu_millicores"),
        ("user_memory_bytes", "node_memory_bytes"),
    ):
        if getattr(assumed, pod) > getattr(assumed, node):
            fix = "No user fits any node: request less, or use larger nodes."
            yield pod, shown[pod], f"at most {node}, which is {shown[node]}", fix
    if assumed.autoscaler is Autoscaler.NONE and not assumed.min_nodes:
        yield "min_nodes", "0", "at least 1 where no autoscaler adds nodes", ""
    if assumed.gc_low > assumed.gc_high:
        yield "gc_low", shown["gc_low"], f"at most gc_high, which is {shown['gc_high']}", ""
    if 0 < assumed.gc_max_age_seconds <= assumed.gc_min_age_seconds:
        expected = f"more than gc_min_age_seconds, which is {shown['gc_min_age_seconds']}, or 0"
        yield "gc_max_age_seconds", shown["gc_max_age_seconds"], expected, ""
    if assumed.max_backoff_seconds < assumed.backoff_seconds:
        yield "max_backoff_seconds", shown["max_backoff_seconds"], "at least backoff_seconds", ""
    # One image in 10,000 is larger. Sizes are log-normal.
    large_bytes = round(assumed.image_median_bytes * math.exp(_LARGE_SIGMAS * assumed.image_sigma))
    if assumed.node_disk_bytes and assumed.node_disk_bytes < large_bytes:
        sizes = (
            f"image_median_bytes is {shown['image_median_bytes']}, image_sigma"
            f" {shown['image_sigma']}"
        )
        expected = (
            "room for an image as large as one in 10,000,"
            f" {show_assumption(large_bytes)} ({sizes}), or 0: endless"
        )
        yield "node_disk_bytes", shown["node_disk_bytes"], expected, ""
    fastest_start = assumed.bind_seconds + assumed.start_seconds
    if assumed.start_timeout_seconds <= fastest_start:
        expected = f"more than bind_seconds and start_seconds, which are {fastest_start:g}"
        fix = "No server would start in time: raise it, or lower the others."
        yield "start_timeout_seconds", shown["start_timeout_seconds"], expected, fix
    if assumed.build_cold_p90_seconds < assumed.build_cold_median_seconds:
        found = shown["build_cold_p90_seconds"]
        yield "build_cold_p90_seconds", found, "at least build_cold_median_seconds", ""


def _read(kind: type, text: str, choices: Sequence[str] | None) -> Any:  # noqa: ANN401 - of the field's kind
    """The value that a text means in a field of that type. Raises ValueError."""
    if choices is not None and text not in choices:
        raise ValueError(text)
    if kind is bool:
        if text.lower() not in _FLAGS:
            raise ValueError(text)
        return _FLAGS[text.lower()]
    if issubclass(kind, StrEnum):
        return kind(text)
    if kind is str:
        return text
    number = parse_quantity(text)
    if kind is int:
        if number.denominator != 1:
            raise ValueError(text)
        return int(number)
    return float(number)


def _expected(kind: type) -> str:
    """What a field of that type accepts, for people."""
    accepted = {
        bool: "true or false",
        int: "a whole number, such as 100 or 36500M",
        float: "a number, such as 0.5 or 1.6G",
    }
    return accepted.get(kind, "text")


def show_assumption(value: object) -> str:
    """An assumption's value for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:g}"
    return str(value)


@cache
def _comments() -> dict[str, str]:
    """Field of Assumptions -> the comment above it, in one line."""
    comments: dict[str, str] = {}
    lines: list[str] = []
    for line in inspect.getsource(module.Assumptions).splitlines():
        stripped = line.strip()
        match = _FIELD.match(line)
        if stripped.startswith("# "):
            lines.append(stripped.removeprefix("# "))
        elif match is not None:
            comments[match["name"]] = " ".join(lines)
            lines = []
    return comments
