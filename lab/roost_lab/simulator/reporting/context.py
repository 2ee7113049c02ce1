"""What a report needs beside the figures, and what readers must know before they believe them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from roost_lab.pages.phrases import show_bytes
from roost_lab.simulator.sweep.summary import Summary
from roost_lab.simulator.sweep.survey import Survey


class ReportContext(NamedTuple):
    """What a report is made of beside the figures."""

    # Policy -> what it is, in a line.
    policies: Mapping[str, str]
    # The name of the trace.
    trace: str
    survey: Survey
    # Roost's version.
    version: str


def notices(summary: Summary, context: ReportContext) -> list[str]:
    """Warnings about the figures, a sentence or two each."""
    texts = [_when_waits_end(summary), *_full_disks(summary)]
    survey = context.survey
    if survey.too_large:
        texts.append(
            f"{survey.too_large:,} attempts request more than a node has, and are given up; the"
            f" first is of {survey.first_too_large}."
        )
    if survey.counts.skipped_lines:
        counts = survey.counts
        texts.append(
            f"{counts.skipped_lines:,} of {counts.lines:,} lines of the trace were skipped; the"
            " reasons are at the end."
        )
    if len(summary.seeds) == 1:
        texts.append(
            "One seed says nothing about chance, so small differences may be luck. --seeds 10 gives"
            " a range."
        )
    if "sessions" not in summary.varied():
        texts.append(
            "How long sessions last is assumed: --vary sessions=short,mid,long shows what that"
            " changes."
        )
    return texts


def _when_waits_end(summary: Summary) -> str:
    """Until when waits are counted."""
    worlds = [world.assumptions for world in summary.worlds]
    answer_seconds = sorted({world.answer_seconds for world in worlds})
    answer = ", ".join(f"{seconds:g}" for seconds in answer_seconds)
    if answer == "0":
        return (
            "Waits end when containers run: how long servers then take to answer is not simulated."
        )
    is_spread = any(world.answer_sigma for world in worlds)
    spread = ", in the median (`answer_sigma`)" if is_spread else ""
    return (
        f"Waits end when servers answer, by assumption {answer} s (`answer_seconds`) after their"
        f" containers run{spread}."
    )


def _full_disks(summary: Summary) -> Iterator[str]:
    """A notice for each world in which a node's images needed more than its disk."""
    for place, world in enumerate(summary.worlds):
        disk_bytes = world.assumptions.node_disk_bytes
        if not disk_bytes:
            # It is endless.
            continue
        # Policy -> the most bytes that one node's images took.
        fullest: dict[str, int] = {}
        for policy in summary.policies:
            most_bytes = max(run.greatest_disk_bytes for run in summary.runs[place, policy])
            if most_bytes > disk_bytes:
                fullest[policy] = most_bytes
        if fullest:
            most = show_bytes(max(fullest.values()))
            yield (
                f"Disks too small ({world.name}): the images of one node took {most} of"
                f" {show_bytes(disk_bytes)} under {', '.join(fullest)}. Images of running pods"
                " aren't collected here; real nodes would evict the pods."
            )
