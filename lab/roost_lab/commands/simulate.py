"""`roost simulate`: replay launches under values files, and show the results side by side."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from generator.faults import UsageError
from roost_core.kube.process import version
from roost_lab.commands.options import format_option, refuse
from roost_lab.simulator.reporting.context import ReportContext
from roost_lab.simulator.reporting.formats import to_json
from roost_lab.simulator.reporting.page import make_page
from roost_lab.simulator.reporting.terminal import to_text
from roost_lab.simulator.setup.checks import AssumptionsError, check_images
from roost_lab.simulator.setup.shipped_policies import describe, policy_files
from roost_lab.simulator.setup.worlds import WORLDS
from roost_lab.simulator.sweep.dask_cluster import DaskCluster
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.request import load_policies, make_worlds
from roost_lab.simulator.sweep.run import (
    JobRunner,
    LocalProcesses,
    SweepError,
    make_jobs,
    run_sweep,
    usual_workers,
)
from roost_lab.simulator.sweep.summary import Summary, WorldSetting, summarise
from roost_lab.simulator.sweep.survey import USUAL_DAYS, Survey, Trace, survey, trace_of
from roost_lab.traces.counts import TraceError

# The most lines about the trace on stderr; the report has all.
MOST_SENTENCES: Final = 8
STDIN: Final = "-"
FAULTS: Final = (TraceError, SweepError, AssumptionsError, UsageError)


def _read(trace: Trace, worlds: Sequence[WorldSetting], talk: Console) -> tuple[Trace, Survey]:
    with talk.status("Reading the trace"):
        surveyed = survey(trace, worlds[0].assumptions)
    sentences = list(surveyed.counts.sentences()) if surveyed.counts.lines else []
    for sentence in sentences[:MOST_SENTENCES]:
        talk.print(sentence, markup=False, soft_wrap=True)
    if len(sentences) > MOST_SENTENCES:
        talk.print(
            f"and {len(sentences) - MOST_SENTENCES} more kinds of lines, in the report",
            soft_wrap=True,
        )
    for world in worlds:
        check_images(world.assumptions, surveyed.largest_image, surveyed.largest_image_bytes)
    return replace(trace, hubs=surveyed.hubs), surveyed


def _simulate(
    trace: Trace,
    talk: Console,
    *,
    policies: Sequence[str],
    values: Sequence[str],
    seeds: int,
    settings: Sequence[str],
    vary: Sequence[str],
    world: str | None,
    workers: int | None,
    dask: str | None,
    record: str | None,
) -> tuple[Summary, ReportContext]:
    chosen, about = load_policies(policies, values)
    worlds = make_worlds(settings, vary, world or "")
    trace, surveyed = _read(trace, worlds, talk)
    settings_of_worlds = [(world.setting, world.assumptions) for world in worlds]
    jobs = make_jobs(chosen, range(1, seeds + 1), settings_of_worlds, trace)
    # Policies are checked before the first replay, and once for all seeds.
    for job in {(job.policy.name, job.assumptions): job for job in jobs}.values():
        check_policy(job.policy, job.assumptions)
    files: list[Path] = []
    if record is not None:
        from roost_lab.simulator.sweep.recording import record_files, record_job  # noqa: PLC0415 - loads SQLAlchemy

        files = record_files(Path(record), [policy.name for policy in chosen])
    columns = (TextColumn("replays"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn())
    bar = Progress(*columns, *left, console=talk, transient=True, disable=not talk.is_terminal)
    task = bar.add_task("", total=len({job.key for job in jobs}) + len(files))
    run_jobs: JobRunner = DaskCluster(dask) if dask else LocalProcesses(workers or usual_workers())
    with bar:
        results = run_sweep(jobs, run_jobs, report=lambda _end: bar.advance(task))
        # `make_jobs` begins with the first world and seed, a job for each policy. These jobs are
        # recorded where this runs, also when the others are far away.
        first_jobs = jobs[: len(files)]
        for file, job in zip(files, first_jobs, strict=True):
            record_job(file, job)
            bar.advance(task)
    if files:
        first, *others = (shlex.quote(str(file)) for file in files)
        beside = f" --beside {others[0]}" if others else ""
        hint = f"To see it: roost view --database {first}{beside}"
        talk.print(hint, markup=False, soft_wrap=True)
    return summarise(results, worlds), ReportContext(about, str(trace), surveyed, version())


def _write(form: str, summary: Summary, context: ReportContext) -> None:
    match form:
        case "html":
            text = make_page(summary, context)
        case "json":
            text = to_json(summary, context)
        case _:
            columns = shutil.get_terminal_size((120, 40)).columns
            # Files and pipes are wide enough for three policies.
            text = to_text(summary, context, columns if sys.stdout.isatty() else max(columns, 120))
    sys.stdout.write(text)


@click.command("simulate")
@click.option(
    "--trace",
    "traces",
    metavar="FILE",
    multiple=True,
    help="Launches; repeats. Default: made-up ones.",
)
@click.option(
    "--days",
    type=click.FloatRange(0, 400, min_open=True),
    help="Of made-up launches, without --trace. Default: 10.",
)
@click.option(
    "--policy", "policies", metavar="NAME", multiple=True, help="A shipped values file; repeats."
)
@click.option(
    "--values",
    "-f",
    metavar="FILE[,FILE]",
    multiple=True,
    help="Your own; repeats, each a policy. Later files win.",
)
@click.option("--list-policies", is_flag=True, help="Print the shipped policies and exit.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Replays of each policy.",
)
@click.option(
    "--world",
    type=click.Choice(tuple(WORLDS)),
    help="Assumptions that belong together; --set changes them. Default: the usual ones.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="An assumption about the world; repeats.",
)
@click.option(
    "--vary",
    metavar="NAME=VALUE,VALUE",
    multiple=True,
    help="Other values of an assumption to compare; repeats.",
)
@click.option(
    "--jobs",
    "-j",
    "workers",
    type=click.IntRange(1, 1024),
    help="Processes. Default: one per processor.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Replay on this Dask cluster instead: its scheduler's address.",
)
@format_option("text", "html", "json", text="Of stdout.")
@click.option(
    "--record",
    metavar="FOLDER",
    help="Also record a replay of each policy there, for `roost view` and `roost why`.",
)
def command(
    *,
    list_policies: bool,
    traces: tuple[str, ...],
    days: float | None,
    form: str,
    **sweep: Any,  # noqa: ANN401 - click's
) -> int:
    """Replay launches under values files, and compare cold starts, waiting and node-hours with
    what is possible.

    \b
    roost simulate
    roost simulate --trace launches.jsonl.gz --values today.yaml --values tomorrow.yaml \\
        --format html > report.html
    roost simulate --policy z2jh-placeholders-packed --policy roost --vary sessions=short,mid,long
    roost simulate --policy z2jh-placeholders-packed --policy roost --seeds 1 --record replays
    """

    if list_policies:
        names = list(policy_files())
        width = max(len(name) for name in names)
        sys.stdout.write("".join(f"{name.ljust(width)}  {describe(name)}\n" for name in names))
        return 0
    if traces and days is not None:
        raise click.UsageError("--days is for made-up launches: leave it out, or --trace")
    with tempfile.TemporaryDirectory() as folder:
        if STDIN in traces:
            # Every replay reads the trace again.
            file = Path(folder, "standard-input")
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            traces = tuple(str(file) if trace == STDIN else trace for trace in traces)
        try:
            trace = trace_of(traces, USUAL_DAYS if days is None else days)
            summary, context = _simulate(trace, Console(stderr=True, highlight=False), **sweep)
        except FAULTS as error:
            return refuse("simulate", error)
    _write(form, summary, context)
    return 0
