"""One HTML file of a stretch of a record, or of two side by side: the page of `roost view` with
what it would ask for.

It loads nothing, so it opens from a mail. Moments are stored at equal steps, at slow starts, and
each minute while many people come; what is equal in several is stored once.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from errno import EFBIG
from gzip import compress
from typing import Any, Final

import orjson

from roost_core.objects.fields import JSONObject
from roost_lab.pages.html_page import content_policy, resource
from roost_lab.report.statistics import Span, cut
from roost_lab.units import MINUTE_US
from roost_lab.view.course import SlowStart
from roost_lab.view.moment import as_json
from roost_lab.view.server import MomentSource, story

MOST_BYTES: Final = 2_000_000
# At equal steps, of each record; a moment takes about 10 ms to read.
MOST_MOMENTS: Final = 120
LEAST_MOMENTS: Final = 12
# Slow starts of each record that have a moment of their own and are explained, the longest waits
# first.
MOST_SLOW: Final = 30
# The largest crowds have a moment each minute, from their begin until so long after it.
MOST_CROWDS: Final = 3
CROWD_US: Final = 20 * MINUTE_US
_SHARED: Final = ("nodes", "pending", "changes")


def make_file(
    sources: Sequence[MomentSource], names: Sequence[str], span: Span, moments: int = MOST_MOMENTS
) -> str:
    """The file's text, of at most MOST_BYTES.

    Raises StoreError, and OSError where even few moments take more.
    """
    told_story = story(sources, names, span)
    slow = [_slowest(course) for course in told_story["courses"]]
    whys = [
        {start.uid: source.why(start.uid) for start in slowest}
        for source, slowest in zip(sources, slow, strict=False)
    ]
    looks = {start.look_at_us for slowest in slow for start in slowest}
    for course in told_story["courses"]:
        largest = sorted(course["crowds"], key=lambda crowd: -crowd["people"])[:MOST_CROWDS]
        for crowd in largest:
            looks.update(range(crowd["from"], crowd["from"] + CROWD_US, MINUTE_US))
    while moments >= LEAST_MOMENTS:
        steps = cut(span.from_us, span.to_us, moments)
        times = sorted(
            {at_us for at_us in (*steps.starts(), *looks) if span.from_us <= at_us <= span.to_us}
        )
        numbers: dict[bytes, int] = {}
        frames = [[_frame(source, at_us, numbers) for at_us in times] for source in sources]
        text = _page(
            {
                "names": list(names),
                "story": told_story,
                "step": steps.step_us,
                "frames": frames,
                "whys": whys,
                "things": [orjson.Fragment(item) for item in numbers],
            }
        )
        if len(text.encode()) < MOST_BYTES:
            return text
        moments //= 2
    raise OSError(
        EFBIG, f"{LEAST_MOMENTS} moments take more than {MOST_BYTES:,} bytes: name an hour by --at"
    )


def _slowest(course: JSONObject) -> list[SlowStart]:
    starts = [SlowStart(*start) for start in course["slow"]]
    return sorted(starts, key=lambda start: -start.wait_us)[:MOST_SLOW]


def _frame(source: MomentSource, at_us: int, numbers: dict[bytes, int]) -> JSONObject:
    """A moment, with numbers in place of nodes, pods and changes. Adds to `numbers`."""
    moment = source.moment(at_us)
    if moment is None:
        return {"empty": True, "at": at_us}
    frame = as_json(moment)

    def number(item: Any) -> int:  # noqa: ANN401 - JSON
        return numbers.setdefault(orjson.dumps(item), len(numbers))

    frame["nodes"] = [
        {**node, "pods": [number(pod) for pod in node["pods"]]} for node in frame["nodes"]
    ]
    return {**frame, **{key: [number(item) for item in frame[key]] for key in _SHARED}}


def _page(data: JSONObject) -> str:
    css = resource("page.css") + resource("view.css")
    script = resource("view.js")
    packed = b64encode(compress(orjson.dumps(data), 9, mtime=0)).decode()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{content_policy(script)}">'
    page = re.sub(r'<link rel="stylesheet"[^>]*>\n', "", resource("view.html"))
    page = page.replace(
        '<script type="module" src="view.js"></script>\n', f"{policy}\n<style>{css}</style>\n"
    )
    scripts = (
        f'<script type="application/json" id="record">{packed}</script>\n<script'
        f' type="module">{script}</script>\n'
    )
    return page.replace("</body>", f"{scripts}</body>")
