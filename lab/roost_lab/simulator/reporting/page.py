"""Make a sweep's page: its head with a sentence, and its sections of plots and tables."""

from __future__ import annotations

from typing import Any, Final

from roost_lab.pages.html_page import Part, render, resource
from roost_lab.pages.phrases import plural
from roost_lab.simulator.reporting import figures as draw
from roost_lab.simulator.reporting import tables as lay_out
from roost_lab.simulator.reporting.amounts import show_cell
from roost_lab.simulator.reporting.context import ReportContext, notices
from roost_lab.simulator.sweep.measures import MEASURES
from roost_lab.simulator.sweep.summary import Summary
from roost_lab.units import US

TITLE: Final = "What these values would have done"
_NOTHING: Final = "No server started in this replay."


def parts(summary: Summary, context: ReportContext) -> list[Part]:
    """Every section of the page; those without figures and rows too."""
    headlines = [draw.headline(summary, measure) for measure in MEASURES if measure.is_headline]
    compared = [lay_out.side_by_side(summary, summary.policies), lay_out.policies(context)]
    world = summary.worlds[0]
    changed = (
        f"Changed from the defaults: {world.name}." if world.setting else "All at their defaults."
    )
    return [
        Part(
            "side-by-side",
            "Side by side",
            "The best possible is a bound that no values can beat, explained at the end. Thin"
            " lines are the range over seeds.",
            headlines,
            compared,
            _NOTHING,
            beside=True,
        ),
        *(
            Part(
                "hubs",
                "By hub",
                "",
                [],
                [table],
                "Hubs share the nodes; each has a release of its own.",
            )
            for table in lay_out.hubs(summary)
        ),
        *(
            Part(
                f"by-{name}",
                f"What {name} changes",
                "Medians over the replays.",
                [],
                [lay_out.sensitivity(summary, name)],
                "",
            )
            for name in summary.varied()
        ),
        Part(
            "assumptions",
            "Assumptions",
            "Everything about the world that neither the trace nor the values say. Each can be set"
            " with --set.",
            [],
            [lay_out.assumptions(summary)],
            changed,
        ),
        Part(
            "bounds",
            "Bounds",
            "",
            [],
            [lay_out.bounds()],
            "What each bound says, and of which figure.",
        ),
        Part(
            "input",
            "The trace",
            "",
            [],
            [lay_out.lines_read(context)],
            "What was read and skipped.",
        ),
    ]


def make_page(summary: Summary, context: ReportContext) -> str:
    """The whole page."""
    return render(
        title=TITLE,
        sentence=_tell(summary),
        about=_about(summary, context),
        footer=(
            f"Replayed by Roost {context.version}. A replay is not a promise; its assumptions are"
            " listed above."
        ),
        notices=notices(summary, context),
        tiles=[],
        parts=parts(summary, context),
        show=show_cell,
        more_css=resource("policies.css"),
    )


def _tell(summary: Summary) -> str:
    """The first policy and Roost's, or the next, in a sentence."""
    from roost_lab.view.course import tell_course, tell_difference  # noqa: PLC0415 - loads SQLAlchemy

    first, *others = summary.policies
    if not others:
        return tell_course(_course(summary, first))
    other = "roost" if "roost" in others else others[0]
    difference = tell_difference([first, other], [_course(summary, first), _course(summary, other)])
    return difference if len(others) == 1 else f"{first} → {other}: {difference}"


def _course(summary: Summary, policy: str) -> dict[str, Any]:
    from roost_lab.view.course import as_shown  # noqa: PLC0415 - as above

    keys = {
        "count": "started",
        "cold_count": "cold",
        "p95_us": "wait_p95",
        "node_hours": "node_hours",
    }
    values = {name: summary.value(key, policy) for name, key in keys.items()}
    amounts = {name: value.median if value else 0 for name, value in values.items()}
    rounded = {name: round(amounts[name]) for name in ("count", "cold_count")}
    until = f"until {summary.worlds[0].assumptions.waits_end}"
    return {**amounts, **rounded, "p95_us": as_shown(amounts["p95_us"] * US), "until": until}


def _about(summary: Summary, context: ReportContext) -> str:
    seeds = ", ".join(map(str, summary.seeds))
    world = summary.worlds[0]
    first = summary.policies[0]
    run = summary.runs[0, first][0]
    compared = (
        f" Changes are against {first}, seed by seed: their median."
        if len(summary.policies) > 1
        else ""
    )
    return (
        f"{context.trace}: {run.attempts:,} attempts to launch, replayed under"
        f" {plural(len(summary.policies), 'set')} of values with"
        f" seed{'' if len(summary.seeds) == 1 else 's'} {seeds}; assumptions: {world.name}. All"
        " policies meet the same launches, session lengths, image sizes and boot times in each"
        f" seed. Every figure is the median over seeds; whiskers are their range.{compared}"
    )
