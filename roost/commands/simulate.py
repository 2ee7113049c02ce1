"""`roost simulate`: replay launches under values files, and show side by side what would have come of it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from rich.console import Console

from cluster.process import version
from generator.faults import Fault
from generator.values import read_values
from recorder.html_page import MissingPlotlyError
from simulator.assumptions import Assumptions
from simulator.checks import AssumptionsError, make_assumptions, read_assumption
from simulator.dask_cluster import DaskCluster
from simulator.formats import to_csv, to_json
from simulator.page import make_page
from simulator.policy import load_policy
from simulator.progress import Teller
from simulator.shipped import assumptions_of, describe, policy_files
from simulator.store_of_results import ResultStore, StoreError
from simulator.suggest import SuggestError, make_space, score_of, search
from simulator.summary import World, summarise
from simulator.survey import survey, trace_of
from simulator.sweep import LocalProcesses, SweepError, make_jobs, run_sweep, usual_workers
from simulator.tables import Told, show_seconds
from simulator.terminal import policy_lines, terminal_width, to_text
from simulator.trace_counts import TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulator.policy import Policy
    from simulator.results import RunResult
    from simulator.suggest import Candidate, Outcome, Score, Space
    from simulator.summary import Summary
    from simulator.survey import Survey, Trace
    from simulator.sweep import Spread

# Compared when nothing is named: what most have, and what Roost has by itself.
USUAL_POLICIES: Final = ("z2jh", "roost")
# Lines about the trace that stderr gets; the report has all.
MOST_SENTENCES: Final = 8
STDIN: Final = "-"
SUFFIXES: Final = {".html": "html", ".htm": "html", ".json": "json", ".csv": "csv"}
FAULTS: Final = (TraceError, SweepError, StoreError, AssumptionsError, MissingPlotlyError, SuggestError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """What was asked for on the command line."""

    traces: tuple[str, ...] = ()
    days: float = 10.0
    policies: tuple[str, ...] = ()
    # Each is one policy: files with commas between, later ones win.
    values: tuple[str, ...] = ()
    seeds: int = 10
    settings: tuple[str, ...] = ()
    sessions: str = ""
    # NAME=VALUE,VALUE: one more world each.
    vary: tuple[str, ...] = ()
    jobs: int | None = None
    dask: str | None = None
    results: str | None = None
    output: str | None = None
    form: str | None = None
    suggest: bool = False
    target_seconds: float = 30.0


class UnknownPolicyError(Exception):
    """No policy of that name is shipped; the message has those that are."""


def run(options: SimulateOptions) -> int:
    """Replay everything and show it; 1 for faults of values, trace, assumptions or a replay."""
    if "list" in options.policies:
        sys.stdout.write(policy_lines([(name, describe(name)) for name in policy_files()]))
        return 0
    if STDIN in options.traces:
        # Every replay reads it anew.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "standard-input")
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            return run(replace(options, traces=tuple(str(file) if one == STDIN else one for one in options.traces)))
    talk = Console(stderr=True, highlight=False)
    if options.output not in {None, "-"} and not Path(str(options.output)).parent.is_dir():
        # Said before hours of replays, not after them.
        print(f"roost simulate: {options.output}: there is no such folder", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    try:
        if options.suggest:
            return _suggest(options, talk)
        summary, told = _simulate(options, talk)
        return _write(options, summary, told)
    except (*FAULTS, UnknownPolicyError) as error:
        for line in str(error).splitlines():
            print(f"roost simulate: {line}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1


def load_policies(options: SimulateOptions) -> tuple[list[Policy], dict[str, str], dict[str, Mapping[str, Any]]]:
    """Policies; name -> what it is; name -> assumptions it changes. Raises as `load_policy`, UnknownPolicyError."""
    names = options.policies or (() if options.values else USUAL_POLICIES)
    unknown = [name for name in names if name not in policy_files()]
    if unknown:
        raise UnknownPolicyError(
            f"--policy {unknown[0]}: no such policy is shipped.{_meant(unknown[0])} --list-policies shows them all; "
            "--values FILE takes a file of your own."
        )
    policies = [load_policy(name) for name in dict.fromkeys(names)]
    about = {name: describe(name) for name in names}
    needs = {name: needed for name in names if (needed := assumptions_of(name))}
    for text in dict.fromkeys(options.values):
        files = text.split(",")
        name = Path(files[-1]).stem
        # The name of a shipped policy, or of another folder's file, would hide it.
        if name in about:
            name = text
        policies.append(load_policy(name, files))
        about[name] = f"values of {text}"
    return policies, about, needs


def _meant(name: str) -> str:
    near = get_close_matches(name, policy_files(), 2, 0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def make_worlds(options: SimulateOptions) -> list[World]:
    """The world that is told in full, then those with one assumption changed. Raises AssumptionsError."""
    base: dict[str, Any] = {}
    for text in options.settings:
        name, value = read_assumption(text, "--set")
        base[name] = value
    varied: dict[str, list[Any]] = {}
    if options.sessions:
        lengths = [read_assumption(f"sessions={one}", "--sessions")[1] for one in options.sessions.split(",")]
        usual = base.get("sessions", Assumptions().sessions)
        base["sessions"] = usual if usual in lengths else lengths[0]
        varied["sessions"] = lengths
    for text in options.vary:
        name, equals, rest = text.partition("=")
        if not equals:
            raise AssumptionsError([Fault("--vary", 0, "", repr(text), "NAME=VALUE,VALUE")])
        varied[name] = [read_assumption(f"{name}={one}", "--vary")[1] for one in rest.split(",")]
    worlds = [_world(base, "--set")]
    for name, values in varied.items():
        for value in values:
            world = _world(base | {name: value}, "--vary")
            if world not in worlds:
                worlds.append(world)
    return worlds


def _world(values: Mapping[str, Any], place: str) -> World:
    usual = asdict(Assumptions())
    assumptions = make_assumptions(values, place)
    return World({name: value for name, value in values.items() if value != usual[name]}, assumptions)


def _read(options: SimulateOptions, world: World, talk: Console) -> tuple[Trace, Survey]:
    trace = trace_of(options.traces, options.days)
    assumptions = world.assumptions
    with talk.status("Reading the trace"):
        found = survey(trace, 1, assumptions.boot_median_seconds + assumptions.autoscaler_loop_seconds)
    sentences = list(found.counts.sentences()) if found.counts.lines else []
    for sentence in sentences[:MOST_SENTENCES]:
        talk.print(sentence, markup=False, soft_wrap=True)
    if len(sentences) > MOST_SENTENCES:
        talk.print(f"and {len(sentences) - MOST_SENTENCES} more kinds of lines, in the report", soft_wrap=True)
    return trace, found


def _spread(options: SimulateOptions) -> Spread:
    return DaskCluster(options.dask) if options.dask else LocalProcesses(options.jobs or usual_workers())


def _simulate(options: SimulateOptions, talk: Console) -> tuple[Summary, Told]:
    worlds = make_worlds(options)
    policies, about, needs = load_policies(options)
    for name, needed in needs.items():
        make_assumptions(needed, f"policy {name}")
    trace, found = _read(options, worlds[0], talk)
    jobs = make_jobs(
        policies, range(1, options.seeds + 1), [(world.setting, world.assumptions) for world in worlds], trace, needs
    )
    store = ResultStore(_results_folder(options))
    teller = Teller(talk, len({job.key for job in jobs}), found.attempts)
    try:
        with teller:
            results = run_sweep(jobs, _spread(options), store, tell=teller)
    except KeyboardInterrupt:
        done = teller.meter.kept + teller.meter.ended
        talk.print(
            f"Stopped: {done} of {teller.meter.replays} replays are done and kept in {store.folder}. The same command "
            "goes on from there.",
            markup=False,
            soft_wrap=True,
        )
        raise
    if store.broken:
        talk.print(
            f"{len(store.broken)} broken results were made anew, as {store.broken[0]}", markup=False, soft_wrap=True
        )
    return summarise(results, worlds), Told(about, str(trace), found, version())


def _suggest(options: SimulateOptions, talk: Console) -> int:
    """Search from the first policy named, and print values to paste; 1 when none reaches the target."""
    world = make_worlds(options)[0]
    chosen = [*options.policies, *options.values] or ["roost"]
    if len(chosen) > 1:
        raise SuggestError(f"--suggest searches from one values file, not {len(chosen)}: name one --policy or --values")
    (base,), _, needs = load_policies(
        replace(options, policies=options.policies or (() if options.values else ("roost",)))
    )
    files = options.values[0].split(",") if options.values else [str(policy_files()[base.name])]
    trace, found = _read(options, world, talk)
    requests = {"cpu": f"{world.assumptions.user_cpu_millicores}m", "memory": str(world.assumptions.user_memory_bytes)}
    space = make_space(read_values(files).values, found.window_p999, requests)
    store = ResultStore(_results_folder(options))

    def evaluate(candidates: Sequence[Candidate], seeds: int) -> list[Score]:
        policies = [load_policy(told_of(one), files, space.settings_of(one, json.dumps)) for one in candidates]
        numbers = range(1, seeds + 1)
        worlds = [(world.setting, replace(world.assumptions, **needs.get(base.name, {})))]
        jobs = make_jobs(policies, numbers, worlds, trace)
        with Teller(talk, len({job.key for job in jobs}), found.attempts) as teller:
            runs = run_sweep(jobs, _spread(options), store, tell=teller)
        by_name: dict[str, list[RunResult]] = {}
        for run in runs:
            by_name.setdefault(run.policy, []).append(run)
        scores = [score_of(by_name[policy.name]) for policy in policies]
        for policy, score in zip(policies, scores, strict=True):
            talk.print(f"{show_score(score)}: {policy.name}", markup=False, soft_wrap=True)
        return scores

    outcome = search(space.axes, space.start, evaluate, options.target_seconds, options.seeds)
    sys.stdout.write(show_outcome(outcome, space, options.target_seconds, str(trace)))
    if outcome.reaches(options.target_seconds):
        return 0
    print(  # noqa: T201 - a command's talk
        f"roost simulate: no values that were tried reach {show_seconds(options.target_seconds)}; these come nearest",
        file=sys.stderr,
    )
    return 1


def told_of(candidate: Candidate) -> str:
    """A candidate for people."""
    return ", ".join(f"{name} {value}" for name, value in candidate)


def show_score(score: Score) -> str:
    """What a candidate gives, for people."""
    wait = show_seconds(score.wait_seconds)
    return f"p95 wait {wait}, {score.node_hours:,.1f} node-hours, {score.cold:,.0f} cold starts"


def show_outcome(outcome: Outcome, space: Space, target_seconds: float, trace: str) -> str:
    """Values to paste, with what they'd give as comments above them."""
    best, start = outcome.scores[outcome.best], outcome.scores[outcome.start]
    seeds = f"{best.seeds} seed{'' if best.seeds == 1 else 's'}"
    lines = [
        f"# For a p95 wait of at most {show_seconds(target_seconds)} at the least node-hours; medians over {seeds}.",
        f"# Launches: {trace}.",
        f"# These: {show_score(best)}.",
        f"# Before: {show_score(start)} ({told_of(outcome.start)}).",
        f"# Tried: {len(outcome.scores)}.",
    ]
    if outcome.best == outcome.start:
        lines.append("# Nothing that was tried is better than what you have.")
    text = yaml.safe_dump(space.values_of(outcome.best), sort_keys=False, width=120)
    return "\n".join(lines) + "\n" + text


def _results_folder(options: SimulateOptions) -> Path:
    if options.results:
        return Path(options.results)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "roost" / "simulate"


def _write(options: SimulateOptions, summary: Summary, told: Told) -> int:
    form = options.form or SUFFIXES.get(Path(options.output or "").suffix.lower(), "text")
    width = terminal_width(shutil.get_terminal_size((120, 40)).columns, is_terminal=sys.stdout.isatty())
    text = _formatted(form, summary, told, width)
    if options.output is None or options.output == "-":
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and form == "text"
        sys.stdout.write(to_text(summary, told, width, colour=True) if colour else text)
        return 0
    try:
        Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"roost simulate: {options.output}: {error.strerror}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    return 0


def _formatted(form: str, summary: Summary, told: Told, width: int) -> str:
    match form:
        case "html":
            return make_page(summary, told)
        case "json":
            return to_json(summary, told)
        case "csv":
            return to_csv(summary)
        case _:
            return to_text(summary, told, width)
