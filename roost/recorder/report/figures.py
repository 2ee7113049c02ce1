"""Draw a report's numbers as figures for Plotly, as plain JSON objects. Pure.

Looks and shapes are those of roost/pages/drawing.py; every text that comes from a cluster is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from roost.pages.drawing import (
    AXIS,
    BETWEEN,
    LEAST_SECONDS,
    LINE,
    PERCENTS,
    SMALL,
    US,
    Figure,
    JSONObject,
    Mark,
    Row,
    Stack,
    bars,
    cut,
    log_axis,
    note,
    plot_axis,
    plot_layout,
    short_names,
    time_text,
    time_ticks,
)
from roost.pages.table import Unit
from roost.recorder.report.gather import KINDS, agreement
from roost.recorder.report.tables import KIND_NAMES, SPAN_NAMES, show, start_names
from roost.recorder.store.records import EVENTS, PODS, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.recorder.report.gather import Pulls, Report
    from roost.recorder.report.statistics import Span

# Names and nodes drawn at most; tables have them all.
MOST_BARS: Final = 10
MOST_CLASSES: Final = 8
MOST_SMALL: Final = 8


GAP: Final = Mark("--gap", "gap in the record", "gap")
VERDICT_NAMES: Final = {
    Verdict.AGREES: "agrees",
    Verdict.DIFFERS: "differs",
    Verdict.UNKNOWN: "not judged",
}


# Start phases


def starts_figure(key: str, report: Report) -> Figure | None:
    """Median and p95 of each span, by class and profile, image or age of node (key)."""
    named = dict(list(start_names(key, report).items())[: MOST_CLASSES if key == "starts_by_class" else None])
    if not named:
        return None
    heads = {names: _class_name(names) if len(names) > 1 else names[0] for names in named}
    short = short_names(heads.values())
    stack = Stack()
    points: dict[str, list[tuple[float, float, float, str]]] = {span: [] for span in SPAN_NAMES}
    longest = 1.0
    for names, spans in named.items():
        whole = spans.get("whole")
        told = f"{whole.count:,} pods" if whole is not None else ""
        stack.name(short[heads[names]], told)
        for span, spans_ in ((one, spans[one]) for one in SPAN_NAMES if one in spans):
            at = stack.bar()
            middle, high = (_drawn(spans_.percentile_us(share)) for share in (0.5, 0.95))
            longest = max(longest, high)
            what = f"{escape(heads[names])}<br>{SPAN_NAMES[span]}: {spans_.count:,}"
            exact = [show((spans_.percentile_us(share) or 0) / US, Unit.SECONDS) for share in (0.5, 0.95)]
            points[span].append((at, middle, high, f"{what}<br>p50 {exact[0]}, p95 {exact[1]}"))
        stack.end()
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [one[1] for one in found],
            "y": [one[0] for one in found],
            "error_x": {
                "type": "data",
                "symmetric": False,
                "array": [one[2] - one[1] for one in found],
                "arrayminus": [0] * len(found),
                "color": f"--{span}",
                "thickness": 2,
                "width": 4,
            },
            "marker": {"color": f"--{span}", "size": 8},
            "hovertext": [one[3] for one in found],
            "hoverinfo": "text",
        }
        for span, found in points.items()
        if found
    ]
    layout = stack.layout(log_axis(longest))
    legend = tuple(Mark(f"--{span}", SPAN_NAMES[span], "point") for span in SPAN_NAMES if points[span])
    return Figure(key, "The point is the median (p50), the line ends at p95.", legend, data, layout)


def _class_name(names: tuple[str, ...]) -> str:
    pod_class, scheduler = names
    # A profile is mostly called after its class.
    return scheduler if pod_class in scheduler else f"{pod_class}, {scheduler}"


def _drawn(span_us: int | None) -> float:
    return max(LEAST_SECONDS, (span_us or 0) / US)


# Over time


def pulls_over_time_figure(report: Report) -> Figure | None:
    """The share of warm pulls, and warm and cold pulls, in each step."""
    if not any(one.warm or one.cold for one in report.pulls_by_step):
        return None
    unseen = report.unseen_steps(EVENTS)
    starts = _times(report)
    seen = [None if gap else one for one, gap in zip(report.pulls_by_step, unseen, strict=True)]
    shares = [one.warm_share if one is not None else None for one in seen]
    hover = [
        ""
        if one is None or share is None
        else f"{start[:16]} UTC<br>{show(share, Unit.SHARE)} of {one.warm + one.cold:,} warm"
        for start, one, share in zip(starts, seen, shares, strict=True)
    ]
    middle_ms = report.steps.step_us // 2
    data: list[JSONObject] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [time_text(start + middle_ms) for start in report.steps.starts()],
            "y": [None if share is None else share * 100 for share in shares],
            "connectgaps": False,
            "line": {"color": "--warm", "width": 1.5},
            "marker": {"color": "--warm", "size": 4},
            "hovertext": hover,
            "hoverinfo": "text",
            "yaxis": "y2",
        },
        _step_bars(report, "warm", "--warm", [None if one is None else one.warm for one in seen]),
        _step_bars(report, "cold", "--cold", [None if one is None else one.cold for one in seen]),
    ]
    layout = _time_layout(report, 300, report.unseen(EVENTS))
    layout["yaxis"] |= {"domain": [0, 0.5]}
    layout["yaxis2"] = plot_axis(range=[-3, 103], domain=[0.6, 1], anchor="x", **PERCENTS)
    caption = "Above: share of pulls that found the image on the node. Below: pulls in each step."
    legend = (Mark("--warm", "warm: there already"), Mark("--cold", "cold: pulled"), *_gap_mark(report, EVENTS))
    return Figure("pulls_over_time", caption, legend, data, layout)


def occupancy_over_time_figure(report: Report) -> Figure | None:
    """Pods on all nodes in each step."""
    if not any(any(values) for values in report.occupancy.values()):
        return None
    unseen = report.unseen_steps(PODS)
    data = [
        _step_bars(report, KIND_NAMES[kind], f"--{kind}", _without(values, unseen))
        for kind, values in report.occupancy.items()
        if any(values)
    ]
    legend = tuple(Mark(f"--{kind}", KIND_NAMES[kind]) for kind, values in report.occupancy.items() if any(values))
    caption = "Pods on all nodes, on average in each step."
    return Figure(
        "occupancy_over_time",
        caption,
        (*legend, *_gap_mark(report, PODS)),
        data,
        _time_layout(report, 280, report.unseen(PODS)),
    )


def occupancy_by_node_figure(report: Report) -> Figure | None:
    """The busiest nodes, one small plot under the other, on the same scale."""
    nodes = {
        name: found
        for name, found in list(report.occupancy_by_node.items())[:MOST_SMALL]
        if any(any(values) for values in found.values())
    }
    if not nodes:
        return None
    unseen = report.unseen_steps(PODS)
    height = len(nodes) * (SMALL + LINE + BETWEEN) + AXIS
    highest = max(max(map(sum, zip(*found.values(), strict=True))) for found in nodes.values())
    layout = _time_layout(report, height, report.unseen(PODS))
    inner = height - AXIS
    data: list[JSONObject] = []
    layout["annotations"] = []
    del layout["yaxis"]
    for index, (name, found) in enumerate(nodes.items()):
        axis = "y" if index == 0 else f"y{index + 1}"
        top = 1 - (index * (SMALL + LINE + BETWEEN) + LINE) / inner
        layout[f"yaxis{axis[1:]}"] = plot_axis(
            domain=[max(0, top - SMALL / inner), top], range=[0, highest * 1.05], nticks=3, anchor="x"
        )
        layout["annotations"].append(note(cut(name), 0, top, xanchor="left", yanchor="bottom"))
        data += [
            {**_step_bars(report, KIND_NAMES[kind], f"--{kind}", _without(found[kind], unseen)), "yaxis": axis}
            for kind in KINDS
            if any(found.get(kind, ()))
        ]
    layout["xaxis"]["anchor"] = "y" if len(nodes) == 1 else f"y{len(nodes)}"
    kinds = [kind for kind in KINDS if any(kind in found for found in nodes.values())]
    more = len(report.mean_by_node) - len(nodes)
    caption = f"The same on {'the busiest nodes' if more > 0 else 'each node'}, on one scale."
    if more > 0:
        caption += f" {more} more in the table."
    legend = tuple(Mark(f"--{kind}", KIND_NAMES[kind]) for kind in kinds)
    return Figure("occupancy_by_node", caption, (*legend, *_gap_mark(report, PODS)), data, layout)


def removals_figure(report: Report) -> Figure | None:
    """Pods that had to go in each step."""
    if not report.removals_by_step:
        return None
    unseen = report.unseen_steps(EVENTS)
    data = [
        _step_bars(report, kind, f"--{kind}", _without(by_step, unseen))
        for kind, by_step in report.removals_by_step.items()
    ]
    legend = tuple(Mark(f"--{kind}", kind) for kind in report.removals_by_step)
    return Figure(
        "removals_over_time",
        "Pods that had to go, in each step.",
        (*legend, *_gap_mark(report, EVENTS)),
        data,
        _time_layout(report, 220, report.unseen(EVENTS)),
    )


def _step_bars(report: Report, name: str, colour: str, values: Sequence[float | None]) -> JSONObject:
    step_ms = report.steps.step_us // 1000
    return {
        "type": "bar",
        "x": _times(report),
        "y": [None if value is None else round(value, 3) for value in values],
        "width": step_ms,
        "offset": 0,
        "name": escape(name),
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": "%{x|%a %d %b %H:%M} UTC<br>%{y:,.4~g} %{fullData.name}<extra></extra>",
    }


def _without(values: Sequence[float], unseen: Sequence[bool]) -> list[float | None]:
    return [None if gap else value for value, gap in zip(values, unseen, strict=True)]


def _gap_mark(report: Report, kind: str) -> tuple[Mark, ...]:
    return (GAP,) if report.unseen(kind) else ()


def _time_layout(report: Report, height: int, gaps: Sequence[Span]) -> JSONObject:
    steps = report.steps
    layout = plot_layout(height)
    layout["barmode"] = "stack"
    layout["xaxis"] = plot_axis(type="date", range=[time_text(steps.from_us), time_text(steps.to_us)], showgrid=False)
    layout["xaxis"] |= time_ticks(steps.from_us, steps.to_us)
    layout["yaxis"] = plot_axis(rangemode="tozero", nticks=5)
    layout["shapes"] = [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": time_text(max(gap.from_us, steps.from_us)),
            "x1": time_text(min(gap.to_us, steps.to_us)),
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "fillcolor": "--gap",
            "line": {"width": 1, "color": "--gap"},
        }
        for gap in gaps
        if gap.to_us > steps.from_us and gap.from_us < steps.to_us
    ]
    return layout


def _times(report: Report) -> list[str]:
    return [time_text(start) for start in report.steps.starts()]


# Bars by name


def pulls_by_image_figure(report: Report) -> Figure | None:
    """Warm and cold pulls of each image."""
    pulls = list(report.pulls_by_image.items())
    if not pulls:
        return None
    short = short_names(name for name, _ in pulls)
    rows = [
        Row(
            short[name],
            show(one.warm_share, Unit.SHARE),
            f"{name}: {one.warm:,} of {one.warm + one.cold:,}",
            [(one.warm_share or 0) * 100],
        )
        for name, one in pulls
    ]
    return bars(
        "pulls_by_image",
        "Share of pulls that found the image on the node.",
        rows,
        [("--warm", "warm")],
        {"range": [0, 100], **PERCENTS},
        legend=False,
    )


def failures_figure(report: Report) -> Figure | None:
    """Failed tries by reason."""
    rows = [
        Row(reason, f"{one.tries:,}", reason, [one.tries]) for reason, one in list(report.failures.items())[:MOST_BARS]
    ]
    caption = "Tries in which at least one node was refused for this reason; one try may have several."
    return bars("failures", caption, rows, [("--cold", "tries")], {}, legend=False)


def pull_counts_figure(report: Report) -> Figure | None:
    """Pulls to each node."""
    rows = [Row(cut(name), f"{one.warm + one.cold:,}", name, [one.warm, one.cold]) for name, one in _nodes(report)]
    marks = [("--warm", "warm"), ("--cold", "cold")]
    return bars("pull_counts", "Pulls, warm and cold.", rows, marks, {})


def pull_bytes_figure(report: Report) -> Figure | None:
    """Bytes pulled to each node."""
    unit = 1 << 30
    rows = [
        Row(cut(name), show(one.image_bytes, Unit.BYTES), name, [one.image_bytes / unit])
        for name, one in _nodes(report)
    ]
    if not any(row.values[0] for row in rows):
        return None
    return bars("pull_bytes", "Bytes pulled.", rows, [("--cold", "GiB")], {"ticksuffix": " GiB"}, legend=False)


def pull_waits_figure(report: Report) -> Figure | None:
    """How long pulls took on each node, and waited for others."""
    rows = [
        Row(
            cut(name),
            show((one.pull_us + one.wait_us) / US, Unit.SECONDS),
            name,
            [one.pull_us / US / 60, one.wait_us / US / 60],
        )
        for name, one in _nodes(report)
    ]
    if not any(any(row.values) for row in rows):
        return None
    marks = [("--cold", "pulling"), ("--evicted", "behind other pulls")]
    return bars("pull_waits", "Time that pods waited for pulls, summed.", rows, marks, {"ticksuffix": " min"})


def _nodes(report: Report) -> list[tuple[str, Pulls]]:
    return list(report.pulls_by_node.items())[:MOST_BARS]


def verdicts_figure(report: Report) -> Figure | None:
    """Verdicts on the bindings of each scheduler profile."""
    rows = []
    for scheduler, found in sorted(report.verdicts.items()):
        total = found.total()
        values = [100 * found[word] / total for word in VERDICT_NAMES]
        rows.append(Row(cut(scheduler), f"{show(agreement(found), Unit.SHARE)} of {total:,}", scheduler, values))
    marks = [(f"--{word}", name) for word, name in VERDICT_NAMES.items()]
    axis = {"range": [0, 100], **PERCENTS}
    caption = "Bindings for which the scheduler's rules, asked again on what the watches told, say the same node."
    return bars("model", caption, rows, marks, axis)
