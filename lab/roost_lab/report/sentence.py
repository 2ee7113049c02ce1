"""The sentence at the head of a report: what users waited for, and what stood idle. Pure.

Everything in it is from the figures below it. What isn't known is left out.
"""

from __future__ import annotations

from roost_lab.pages.phrases import plural, show_seconds, show_span
from roost_lab.recorder.store.records import PODS
from roost_lab.report.gaps import Gaps, gap_steps
from roost_lab.report.imported import Imported
from roost_lab.report.occupancy import Occupancy
from roost_lab.report.pulls import Pulls
from roost_lab.report.removals import room_given
from roost_lab.report.seated import seated_sentence
from roost_lab.report.slow_starts import StartTimes
from roost_lab.report.start_phases import WindowStarts
from roost_lab.report.statistics import FEWEST, Spans, covered
from roost_lab.report.subject import Report
from roost_lab.report.waits_after_binding import WaitsAfterBinding
from roost_lab.units import HOUR_SECONDS, US


def sentence(report: Report) -> str:
    """The sentence, or two of them; "" of nothing recorded."""
    if report.is_empty:
        return ""
    sentences = (
        _starts(report),
        _other_waits(report),
        _failed(report),
        seated_sentence(report),
        _idle_nodes(report),
    )
    return " ".join(text for text in sentences if text)


def _failed(report: Report) -> str:
    starts = report[WindowStarts]
    ended = starts.whole.count
    sentences = []
    if starts.failed:
        noun = "more start" if ended else "start"
        sentences.append(f"{plural(starts.failed, noun)} failed.")
    # A few are under way whenever a period ends.
    are_many = ended > 0 and starts.unended * FEWEST >= ended
    # Events alone don't tell whose start ended.
    if are_many and not report[Imported].pods:
        sentences.append(f"{plural(starts.unended, 'more start')} didn't end in this period.")
    return " ".join(sentences)


def _starts(report: Report) -> str:
    times = report[StartTimes]
    cold = times.cold.count
    number = times.cold.count + times.others.count
    if not number:
        begun = report[WindowStarts].unended + report[WindowStarts].failed
        none = f"None of {begun:,} starts" if begun > 1 else "No start"
        return f"{none} ended in this period."
    # The record has none where Events about images were not there to be read.
    is_told = bool(report[Pulls].total.number)
    took = show_seconds(_middle(times.cold + times.others))
    if number == 1:
        others = _waits_of_one(report)
        if others:
            image = ", besides an image" if cold else ""
            return f"One start took {took} and waited {others}{image}."
        waited = f" and waited for {'an' if cold else 'no'} image" if is_told else ""
        return f"One start took {took}{waited}."
    half = f"half took {took} at most."
    if not is_told:
        return f"Of {number:,} starts, {half}"
    if cold in (0, number):
        return f"{'All' if cold else 'None of'} {number:,} starts waited for an image; {half}"
    more = more_seconds(report)
    longer = f", {show_seconds(more)} more" if more else ""
    share = _show_percent(100 * cold / number)
    return f"Of {number:,} starts, {cold:,} ({share} %) waited for an image{longer}."


def _show_percent(percent: float) -> str:
    """A share of some, and of not all: never 0, and never 100."""
    if percent < 1:
        return "<1"
    if percent > 99:
        return ">99"
    return f"{percent:.0f}"


def _waits_of_one(report: Report) -> str:
    """What the only start waited for after its binding; "" for nothing but images."""
    waits = []
    for of_kind in report[WaitsAfterBinding].explained:
        cause = f": {of_kind.cause}" if of_kind.cause else ""
        waits.append(f"{show_span(of_kind.longest_us)} for {of_kind.awaits}{cause}")
    return " and ".join(waits)


def _other_waits(report: Report) -> str:
    """What starts waited for besides a node and an image."""
    times = report[StartTimes]
    waits = report[WaitsAfterBinding].explained
    if not waits or times.cold.count + times.others.count == 1:
        return ""
    parts = []
    for of_kind in waits:
        at_most = "at most " if of_kind.spans.count > 1 else ""
        longest = f"{at_most}{show_span(of_kind.longest_us)}"
        parts.append(f"{of_kind.spans.count:,} waited for {of_kind.words} ({longest})")
    return f"{', '.join(parts)}."


def more_seconds(report: Report) -> int:
    """By how much the median of the starts that waited for an image is above that of the others; 0:
    it isn't.
    """
    times = report[StartTimes]
    if not (times.cold.count and times.others.count):
        return 0
    # Pods have whole seconds: less isn't known.
    more = max(0, round(_middle(times.cold) - _middle(times.others)))
    if not report[WaitsAfterBinding].explained:
        return more
    # Volumes and init containers take their time in some of them, which isn't the images'.
    return min(more, round(_middle(times.pulled)))


def _middle(spans: Spans) -> float:
    """The median, in seconds."""
    return (spans.percentile_us(0.5) or 0) / US


def idle_seconds(report: Report) -> list[float] | None:
    """How long each node held placeholders and no other pod of a class, where it did; None:
    placeholders were nowhere.

    Only steps of which everything is known count.
    """
    gaps = gap_steps(report, PODS)
    held = report[Occupancy].only_placeholders
    steps = [sum(not gaps[index] for index in of_node) for of_node in held.values()]
    return [number * report.steps.step_us / US for number in steps if number] if held else None


def leaves_gaps_out(report: Report) -> bool:
    """Whether `idle_seconds` lacks steps of the record, as pods may be missing in a gap there."""
    marked = [gap.span for gap in report[Gaps].gaps if gap.kind == PODS]
    return any(covered(report.steps, marked))


def _idle_nodes(report: Report) -> str:
    idle = idle_seconds(report)
    if not idle:
        return "" if idle is None else "No node held only placeholders."
    given = room_given(report)
    saved = f"; {plural(given, 'placeholder')} gave way to a pod without room" if given else ""
    hours = round(sum(idle) / HOUR_SECONDS)
    long = f"{hours:,} hours" if hours >= 2 else show_seconds(sum(idle))
    if len(idle) == 1:
        return f"One node held only placeholders for {long}{saved}."
    return f"{plural(len(idle), 'node')} held only placeholders, for {long} together{saved}."
