"""Hold what a report needs beside the figures, and say what readers must know before they believe
the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from roost_lab.pages.phrases import show_bytes
from roost_lab.simulator.sweep.summary import Summary
from roost_lab.simulator.sweep.survey import Survey


class ReportContext(NamedTuple):
    """What a report is made of beside the figures."""

    # Policy -> what it is, in a line.
    policies: Mapping[str, str]
    trace: str
    survey: Survey
    version: str


def notices(summary: Summary, context: ReportContext) -> list[str]:
    """Warnings about the figures, a sentence or two each."""
    answer = ", ".join(
        f"{seconds:g}"
        for seconds in sorted({world.assumptions.answer_seconds for world in summary.worlds})
    )
    is_spread = any(world.assumptions.answer_sigma for world in summary.worlds)
    spread = ", in the median (`answer_sigma`)" if is_spread else ""
    waits_end = (
        f"Waits end when servers answer, by assumption {answer} s (`answer_seconds`) after their"
        f" containers run{spread}."
    )
    if answer == "0":
        waits_end = (
            "Waits end when containers run: how long servers then take to answer is not simulated."
        )
    texts = [waits_end]
    for place, world in enumerate(summary.worlds):
        disk_bytes = world.assumptions.node_disk_bytes
        fullest = {
            policy: max(run.greatest_disk_bytes for run in summary.runs[place, policy])
            for policy in summary.policies
        }
        beyond = [policy for policy, most in fullest.items() if 0 < disk_bytes < most]
        if beyond:
            most = show_bytes(max(fullest[policy] for policy in beyond))
            texts.append(
                f"Disks too small ({world.name}): the images of one node took {most} of"
                f" {show_bytes(disk_bytes)} under {', '.join(beyond)}. Images of running pods"
                " aren't collected here; real nodes would evict the pods."
            )
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
