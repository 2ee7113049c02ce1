"""Make the report's page: its sections, and the key figures at its head."""

from __future__ import annotations

from functools import partial
from typing import Final

from roost_lab.pages.html_page import render
from roost_lab.pages.phrases import plural, show_span
from roost_lab.pages.table import Unit
from roost_lab.recorder.store.records import EVENTS, PODS
from roost_lab.report import imported
from roost_lab.report.gaps import gap_spans
from roost_lab.report.key_figures import tiles
from roost_lab.report.sections import parts
from roost_lab.report.sentence import sentence
from roost_lab.report.start_phases import show
from roost_lab.report.statistics import Span
from roost_lab.report.subject import Report

TITLE: Final = "How pods started, and where they went"
# The title names so many hubs at most; of more it gives the number.
MAX_NAMED_HUBS: Final = 3


def make_page(report: Report, footer: str) -> str:
    """The HTML page. footer: a text that names the database and Roost's version."""
    return render(
        title=title(report),
        sentence=sentence(report),
        about=_about(report),
        footer=footer,
        notices=notices(report),
        tiles=[] if report.is_empty else tiles(report),
        parts=[] if report.is_empty else parts(report),
        show=partial(show, zone=report.zone),
    )


def title(report: Report) -> str:
    """The page's title, which names hub and cluster where they are known."""
    hubs = list(report.hubs)
    if report.scope.hub is not None:
        hubs = [report.scope.hub]
    names = ", ".join(hubs) if len(hubs) <= MAX_NAMED_HUBS else f"{len(hubs)} hubs"
    where = " on ".join(filter(None, [names, report.cluster]))
    return f"{where}: {TITLE[0].lower()}{TITLE[1:]}" if where else TITLE


def _about(report: Report) -> str:
    """Which time and which pods the report covers, in sentences."""
    if report.extent is None:
        return "The database has no records."
    from_us, to_us = report.window
    covered = f"{_period(report, from_us, to_us)} ({show_span(to_us - from_us)})."
    chosen = [f"{option} {value}" for option, value in report.scope.chosen.items()]
    if chosen:
        covered += (
            f" Only pods of {', '.join(chosen)}; gaps and node-hours are of the whole cluster."
        )
    return f"{covered} Plots over time have steps of {show_span(report.steps.step_us)}."


def _period(report: Report, from_us: int, to_us: int) -> str:
    begin = show(from_us, Unit.TIME, report.zone)
    end = show(to_us, Unit.TIME, report.zone)
    return f"{begin} to {end} {report.zone}"


def notices(report: Report) -> list[str]:
    """What isn't known of the period: each notice is a sentence or a few."""
    if report.extent is None:
        return ["Nothing has been recorded in this database yet. Run `roost record` to fill it."]
    if report.is_empty:
        return [_why_empty(report, report.extent)]
    notices = list(imported.notices(report))
    for kind, objects in ((PODS, "Pods"), (EVENTS, "Events (pulls, failures, pre-emptions)")):
        spans = gap_spans(report, kind)
        if spans:
            missing_us = sum(
                min(span.to_us, report.window.to_us) - max(span.from_us, report.window.from_us)
                for span in spans
            )
            where = f"{plural(len(spans), 'gap')}, grey in the plots"
            notices.append(
                f"{objects} may be missing for {show_span(missing_us)} of this period ({where})."
            )
    return notices


def _why_empty(report: Report, extent: Span) -> str:
    """Why the report has no numbers, and which period would have some. extent: of the record."""
    recorded = _period(report, extent.from_us, extent.to_us)
    if report.window.to_us <= extent.from_us or report.window.from_us >= extent.to_us:
        return (
            f"This period is outside the record, which covers {recorded}:"
            " choose with --since and --until."
            " Whether pods that ran at the end of the record still do is not known either."
        )
    if report.scope.chosen:
        return (
            "Nothing of these pods was recorded in this period:"
            " choose another with --since and --until."
        )
    return (
        f"Nothing was recorded in this period. The record covers {recorded}:"
        " choose with --since and --until."
    )
