"""Make the report's page: its sections, and the key figures at its head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.pages.dates import US
from roost.pages.html_page import Tile, render
from roost.pages.phrases import show_span
from roost.pages.table import Unit, iso_time
from roost.recorder.report import imported
from roost.recorder.report.failures import Failures
from roost.recorder.report.gaps import unseen
from roost.recorder.report.pulls import Pulls
from roost.recorder.report.removals import Removals
from roost.recorder.report.sections import parts
from roost.recorder.report.starts import Starts, show
from roost.recorder.report.verdicts import Verdicts
from roost.recorder.store.records import EVENTS, PODS

if TYPE_CHECKING:
    from roost.recorder.report.subject import Report

TITLE: Final = "How pods started, and where they went"


def make_page(report: Report, about: str) -> str:
    """The HTML page. about: the footer, which names the database and Roost's version."""
    return render(
        title=TITLE,
        about=_span(report),
        footer=about,
        notices=_notices(report),
        tiles=[] if report.is_empty else _tiles(report),
        parts=[] if report.is_empty else parts(report),
        show=show,
    )


def _span(report: Report) -> str:
    from_us, to_us = report.window
    if report.extent is None:
        return "The database has no records."
    covered = f"{_time(from_us)} to {_time(to_us)} UTC ({show_span(to_us - from_us)})."
    return f"{covered} Plots over time have steps of {show_span(report.steps.step_us)}."


def _time(at_us: int) -> str:
    return iso_time(at_us)[:16].replace("T", " ")


def _notices(report: Report) -> list[str]:
    if report.extent is None:
        return ["Nothing has been recorded in this database yet. Run `roost record` to fill it."]
    if report.is_empty:
        from_us, to_us = report.extent
        recorded = f"{_time(from_us)} to {_time(to_us)} UTC"
        return [f"Nothing was recorded in this period. The record covers {recorded}: choose with --since and --until."]
    notices = []
    for kind, what in ((PODS, "Pods"), (EVENTS, "Events (pulls, failures, pre-emptions)")):
        spans = unseen(report, kind)
        if spans:
            missing_us = sum(
                min(span.to_us, report.window.to_us) - max(span.from_us, report.window.from_us) for span in spans
            )
            where = f"{len(spans)} gap{'' if len(spans) == 1 else 's'}, grey in the plots"
            notices.append(f"{what} may be missing for {show_span(missing_us)} of this period ({where}).")
    return [*imported.notices(report), *notices]


def _tiles(report: Report) -> list[Tile]:
    starts, pulls = report[Starts], report[Pulls].total
    whole = starts.whole
    classes = ", ".join(starts.classes) or "all"
    return [
        Tile("Starts", f"{whole.count:,}", f"that became ready; class {classes}"),
        Tile("Created to ready", _percentile(whole.percentile_us(0.5)), "the median (p50)"),
        Tile("Slow starts", _percentile(whole.percentile_us(0.95)), "95 % took no longer (p95)"),
        Tile("Warm pulls", show(pulls.warm_share, Unit.SHARE), f"of {pulls.number:,}"),
        Tile("Failed attempts", f"{report[Failures].tries:,}", "to find a node"),
        Tile("Removed", f"{report[Removals].by_class.total():,}", "pre-empted or evicted"),
        Tile("Model agrees", show(report[Verdicts].agreement, Unit.SHARE), "of the bindings it could judge"),
    ]


def _percentile(span_us: int | None) -> str:
    return show(None if span_us is None else span_us / US, Unit.SECONDS)
