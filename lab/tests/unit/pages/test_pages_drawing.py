import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.moments import BEGIN, HOUR, MINUTE
from roost_lab.pages.drawing import MAX_LINES, Stack, time_ticks
from roost_lab.pages.html_page import resource
from roost_lab.pages.names import shorten


@given(st.integers(0, 2 * 10**15), st.integers(10 * MINUTE, 4000 * 24 * HOUR))
def test_ticks_of_time_are_few_round_and_within(from_us: int, length_us: int) -> None:
    ticks = time_ticks(from_us, from_us + length_us)
    assert 1 <= len(ticks["tickvals"]) <= 5
    assert len(set(ticks["tickvals"])) == len(ticks["ticktext"])
    assert all(text.endswith(":00") for text in ticks["tickvals"])


def test_ticks_within_a_day_say_the_day_once_and_the_next_day_again() -> None:
    expected = ["18:00\n15 Jan", "21:00", "00:00\n16 Jan", "03:00"]
    assert time_ticks(BEGIN + 10 * HOUR, BEGIN + 20 * HOUR)["ticktext"] == expected
    assert time_ticks(BEGIN, BEGIN + 5 * 24 * HOUR)["ticktext"] == [
        "16 Jan",
        "17 Jan",
        "18 Jan",
        "19 Jan",
        "20 Jan",
    ]


@given(
    st.integers(24 * HOUR, 2 * 10**15),
    st.integers(3 * HOUR, 4000 * 24 * HOUR),
    st.sampled_from(
        [
            "Europe/Berlin",
            "Asia/Kathmandu",
            "America/St_Johns",
            "Pacific/Apia",
            "Australia/Lord_Howe",
        ]
    ),
)
def test_ticks_are_where_the_zones_clocks_show_their_labels(
    from_us: int, length_us: int, name: str
) -> None:
    zone = ZoneInfo(name)
    ticks = time_ticks(from_us, from_us + length_us, zone)
    assert 1 <= len(ticks["tickvals"]) <= 5
    for value, text in zip(ticks["tickvals"], ticks["ticktext"], strict=True):
        shown = datetime.fromisoformat(value + "+00:00").astimezone(zone)
        # A label that clocks skip stands where they are changed.
        if shown.replace(tzinfo=None) in times_around(shown, zone):
            assert shown.strftime("%H:%M" if ":" in text else "%-d %b") == text.partition("\n")[0]


def times_around(shown: datetime, zone: ZoneInfo) -> list[datetime]:
    """The time itself, if the zone's clocks are not changed within a day of it."""
    day = timedelta(days=1)
    offsets = {
        (shown.astimezone(UTC) + shift).astimezone(zone).utcoffset()
        for shift in (-day, 0 * day, day)
    }
    return [shown.replace(tzinfo=None)] if len(offsets) == 1 else []


def test_ticks_of_the_night_in_which_clocks_are_changed_are_apart() -> None:
    begin_us = int(datetime(2026, 10, 24, 20, tzinfo=UTC).timestamp()) * 1_000_000
    ticks = time_ticks(begin_us, begin_us + 12 * HOUR, ZoneInfo("Europe/Berlin"))
    assert ticks["ticktext"] == ["00:00\n25 Oct", "03:00", "06:00", "09:00"]
    assert [value[11:16] for value in ticks["tickvals"]] == ["22:00", "02:00", "05:00", "08:00"]


def test_names_are_short_and_told_apart_and_whole_below_the_mouse() -> None:
    nodes = [f"gke-prod-cluster-user-pool-1a2b3c4d-{end}" for end in ("abcd", "x1z9")]
    stack = Stack()
    for node in nodes:
        stack.name(node, "1")
    named = [
        note
        for note in stack.figure("key", "Caption.", (), [], {}).layout["annotations"]
        if "hovertext" in note
    ]
    assert [note["hovertext"] for note in named] == nodes
    assert [note["text"] for note in named] == ["…abcd", "…x1z9"]


def test_a_sentence_has_its_end_cut_where_it_has_too_many_lines() -> None:
    stack = Stack()
    stack.name("a reason " * 40, "1")
    texts = [
        note["text"] for note in stack.figure("key", "Caption.", (), [], {}).layout["annotations"]
    ]
    assert len(texts) == MAX_LINES + 1
    assert texts[MAX_LINES - 1].endswith(" …")


def test_nodes_of_eks_lose_the_domain_that_all_have() -> None:
    nodes = [f"ip-10-0-{number}.eu-west-1.compute.internal" for number in ("1-17", "1-203", "33-4")]
    assert list(shorten(nodes, 26).values()) == ["ip-10-0-1-17…", "ip-10-0-1-203…", "ip-10-0-33-4…"]
    assert list(shorten(nodes, 8).values()) == ["…1-17…", "…1-203…", "…33-4…"]


def test_nodes_of_gke_lose_the_cluster_that_all_but_a_virtual_node_have_and_then_their_middle() -> (
    None
):
    ends = ("user-pool-1a2b3c4d-abcd", "user-pool-1a2b3c4d-x1z9", "core-pool-99aa88bb-qq0q")
    nodes = [*(f"gke-prod-cluster-{end}" for end in ends), "virtual-kubelet"]
    assert list(shorten(nodes, 44).values()) == nodes
    assert list(shorten(nodes, 26).values()) == [*(f"…{end}" for end in ends), "virtual-kubelet"]
    assert list(shorten(nodes, 14).values()) == [
        "…use…3c4d-abcd",
        "…use…3c4d-x1z9",
        "…cor…88bb-qq0q",
        "virt…l-kubelet",
    ]


def test_images_become_their_last_part_unless_another_has_it() -> None:
    names = [
        "r.example.org/a/base:1",
        "r.example.org/b/base:1",
        "ghcr.io/c/other:1",
        "quay.io/d/r2d-g5b:" + "0a1b" * 10,
    ]
    assert list(shorten(names, 26).values()) == [
        *names[:2],
        "other:1",
        "r2d-g5b:…b0a1b0a1b0a1b0a1b",
    ]


def test_names_that_are_equal_once_they_are_cut_are_numbered() -> None:
    assert list(shorten(["x" * 90, "x" * 91], 10).values()) == ["xxx…xxxxxx", "xxx…xxxx~2"]


Colour = tuple[float, float, float]

LIGHT, DARK = "light", "dark"
# Colour vision of severity 1. Source: Machado, Oliveira, Fernandes, "A Physiologically-based Model
# for Simulation of Color Vision Deficiency", IEEE Transactions on Visualization and Computer
# Graphics 15 (2009), on linear RGB.
VISIONS: Mapping[str, Sequence[Colour]] = {
    "trichromats": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopes": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopes": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
# What stands beside each other in one figure.
SERIES = {
    "kinds of pods": ("user", "build", "placeholder", "other"),
    "phases": ("whole", "hub", "node", "pull", "containers", "ready", "answer"),
    "pulls": ("warm", "cold"),
    "policies": ("p0", "p1", "p2", "p3", "p4", "p5", "bound"),
    "a band": ("whole", "band"),
}
# Distances in CIELAB (CIE 1976). Two colours of large areas are told apart from about 2; of small
# marks, far apart from each other, from about 10. Source: Stone, Szafir, Setlur, "An Engineering
# Model for Color Difference as a Function of Size", CIC 2014.
LEAST_DISTANCE = 20.0
# WCAG 2.2, success criterion 1.4.11.
LEAST_CONTRAST = 3.0


def palette(scheme: str) -> dict[str, str]:
    """CSS variables of a scheme -> #rrggbb."""
    css = resource("page.css") + resource("policies.css")
    light, _, rest = css.partition("@media screen and (prefers-color-scheme: dark)")
    dark, _, rest = rest.partition("* {")
    found = dict(
        re.findall(
            r"--(\w+): ([^;]+);", light + rest.partition(".paper {")[0] + resource("policies.css")
        )
    )
    if scheme == DARK:
        found |= dict(re.findall(r"--(\w+): ([^;]+);", dark))
    named = {name: re.fullmatch(r"var\(--(\w+)\)", value) for name, value in found.items()}
    return {name: found[to[1]] if (to := named[name]) else value for name, value in found.items()}


def linear(colour: str) -> Colour:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return straight(red), straight(green), straight(blue)


def straight(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def seen_as(colour: str, vision: str) -> Colour:
    """CIELAB, D65."""
    rgb = linear(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(part * one for part, one in zip(row, rgb, strict=True))))
        for row in VISIONS[vision]
    )
    x, y, z = (
        curve(one)
        for one in (
            (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047,
            0.2126729 * red + 0.7151522 * green + 0.0721750 * blue,
            (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883,
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def curve(value: float) -> float:
    return value ** (1 / 3) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116


def distance(one: str, other: str, vision: str) -> float:
    pairs = zip(seen_as(one, vision), seen_as(other, vision), strict=True)
    return sum((a - b) ** 2 for a, b in pairs) ** 0.5  # type: ignore[no-any-return]  # a float's power may be complex


def contrast(one: str, other: str) -> float:
    red, green, blue = 0.2126, 0.7152, 0.0722
    lights = sorted(
        sum(a * b for a, b in zip((red, green, blue), linear(colour), strict=True))
        for colour in (one, other)
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("names", SERIES.values(), ids=SERIES)
def test_colours_in_one_figure_are_told_apart(
    names: Sequence[str], vision: str, scheme: str
) -> None:
    colours = palette(scheme)
    near = {
        (one, other): round(distance(colours[one], colours[other], vision), 1)
        for one, other in combinations(names, 2)
        if distance(colours[one], colours[other], vision) < LEAST_DISTANCE
    }
    assert near == {}


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_colours_stand_out_from_the_page(scheme: str) -> None:
    colours = palette(scheme)
    names = {name for series in SERIES.values() for name in series} - {"band"}
    faint = {
        (name, below): round(contrast(colours[name], colours[below]), 2)
        for name in names
        for below in ("card", "paper")
        if contrast(colours[name], colours[below]) < LEAST_CONTRAST
    }
    assert faint == {}


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_black_letters_are_read_on_pods(scheme: str) -> None:
    colours = palette(scheme)
    kinds = SERIES["kinds of pods"]
    assert {
        kind: contrast(colours[kind], "#000000")
        for kind in kinds
        if contrast(colours[kind], "#000000") < 4.5
    } == {}
