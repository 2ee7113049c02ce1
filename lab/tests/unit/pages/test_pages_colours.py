"""The colours of plots: told apart with any colour vision, and seen on the page, in both schemes."""

from __future__ import annotations

import re
from importlib import resources
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from roost_lab.simulator.reporting.figures import CSS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Colour = tuple[float, float, float]

LIGHT, DARK = "light", "dark"
# Colour vision of severity 1. Source: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of
# Color Vision Deficiency", IEEE Transactions on Visualization and Computer Graphics 15 (2009), on linear RGB.
VISIONS: Mapping[str, Sequence[Colour]] = {
    "trichromats": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopes": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopes": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
# What stands beside each other in one figure.
SERIES = {
    "kinds of pods": ("user", "build", "placeholder", "other"),
    "phases": ("whole", "hub", "node", "pull", "containers", "ready", "answer"),
    "pulls": ("warm", "cold"),
    "policies": ("p0", "p1", "p2", "p3", "p4", "p5", "bound"),
    "a band": ("whole", "band"),
}
# Distances in CIELAB (CIE 1976). Two colours of large areas are told apart from about 2; of small marks, far apart
# from each other, from about 10. Source: Stone, Szafir, Setlur, "An Engineering Model for Color Difference as a
# Function of Size", CIC 2014.
LEAST_DISTANCE = 20.0
# WCAG 2.2, success criterion 1.4.11.
LEAST_CONTRAST = 3.0


def palette(scheme: str) -> dict[str, str]:
    """CSS variables of a scheme -> #rrggbb."""
    css = (resources.files("roost_lab.pages") / "page.css").read_text(encoding="utf-8") + CSS
    light, _, rest = css.partition("@media screen and (prefers-color-scheme: dark)")
    dark, _, rest = rest.partition("* {")
    found = dict(re.findall(r"--(\w+): ([^;]+);", light + rest.partition(".paper {")[0] + CSS))
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
        min(1.0, max(0.0, sum(part * one for part, one in zip(row, rgb, strict=True)))) for row in VISIONS[vision]
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
        sum(a * b for a, b in zip((red, green, blue), linear(colour), strict=True)) for colour in (one, other)
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("names", SERIES.values(), ids=SERIES)
def test_colours_in_one_figure_are_told_apart(names: Sequence[str], vision: str, scheme: str) -> None:
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
        kind: contrast(colours[kind], "#000000") for kind in kinds if contrast(colours[kind], "#000000") < 4.5
    } == {}
