"""A drawing for a page, as SVG: its frame, its style in light and in dark, and words in it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# In light and in dark, also where an <img> shows them: the page's colours aren't known there, so
# each has its ground.
STYLE: Final = """<style>
text { font: 13px Helvetica, Arial, sans-serif; fill: #20262c }
.small { font-size: 12px; fill: #56606a }
.bold { font-weight: bold }
.ground { fill: #f6f7f9 }
.node { fill: #fff; stroke: #7d8791 }
.closed { stroke: #b3541e; stroke-width: 2; stroke-dasharray: 6 4 }
.user { fill: #3b7dd8 }
.free { fill: none; stroke: #d3d8dd }
.placeholder { fill: #e3e6ea; stroke: #7d8791; stroke-dasharray: 3 2 }
.grid { stroke: #dde1e5 }
.line { fill: none; stroke-width: 2 }
.users { stroke: #3b7dd8 }
.places { stroke: #7d8791; stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9ec }
.small { fill: #aab3bc }
.ground { fill: #171b1f }
.node { fill: #22282e; stroke: #8a939c }
.closed { stroke: #e08a55 }
.user { fill: #5b9bf0 }
.free { stroke: #3c444c }
.placeholder { fill: #39414a; stroke: #9aa3ad }
.grid { stroke: #313840 }
.users { stroke: #5b9bf0 }
.places { stroke: #9aa3ad }
}
</style>"""
# Of a drawing, in pixels.
WIDTH: Final = 760


def svg(height: int, label: str, parts: Sequence[str]) -> str:
    """A drawing as a file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}"'
    )
    ground = f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>'
    return "\n".join(
        (f'{head} role="img" aria-label="{escape(label)}">', STYLE, ground, *parts, "</svg>\n")
    )


def text(x: float, y: float, words: str, kind: str = "", style: str = "") -> str:
    """Words, from x on; kind: classes of STYLE. style: what differs from these, as CSS."""
    place = f'x="{round(x, 1):g}" y="{round(y, 1):g}"'
    own_style = f' style="{style}"' if style else ""
    return f'<text {place} class="{kind}"{own_style}>{escape(words)}</text>'
