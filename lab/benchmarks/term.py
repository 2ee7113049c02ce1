"""Play a university's term with Roost and without it: `python -m benchmarks.term`.

`benchmarks.terms` draws the terms: each seed is another university. Each term is played by these
arms:

- none: the hub has no placeholders.
- fixed: the hub always has 25 placeholders, as zero-to-jupyterhub keeps them.
- imported: what `roost import` writes for the hub without placeholders. The numbers are learned in
  the replay itself.
- booked: as imported, and all classes are booked as by `roost book --timetable`. With the variant
  two-empty-weeks some bookings also count before the first class, because a booking has no first
  day. With every-second-week, new-timetable and moved-classes each class is booked for every week.
- known: as imported, with the history of the same timetable's two weeks before, as from Prometheus.
- oracle: as imported, but it knows all launches. It keeps the seats that are needed within a node's
  boot.

Without `--arms`, booked and known are left out; `--first-week` plays none, imported, booked and
known, and compares their first week alone.

With `--hubs`, each class and each of the people who come one by one is of one of so many hubs. The
hubs share the nodes, and each has its own release, with `sharedPools`. What the controllers tell is
then the sum of all releases'. With `--learning-hubs`, only some of them learn.

With `--sets-by-size`, the imported hub has a set of placeholders for each size of seat. Some seeds,
as 12 and 13, have two sizes.

`--exam` plays another question: see `benchmarks.term_exam`.

A wait ends when containers run. Who never gets a server is counted as 999 s. Who waits longer than
30 s is late. Most figures leave the exam's people apart, because no earlier evening had an exam.

If `none` and `imported` are both played, the goals are judged for each autoscaler. A broken goal is
exit status 1. One goal is of the whole term: what the controllers tell that learning cost, against
the true difference between `imported` and `none`. What they tell that it saved stands beside it.
`none` is played several times for this goal, because its node-hours depend on chance (`--draws`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

import yaml

from benchmarks import term_exam
from benchmarks import terms as drawn
from benchmarks.figures import say
from benchmarks.root import ROOT
from benchmarks.term_figures import (
    FIXED,
    IMPORTED,
    NONE,
    ORACLE,
    Run,
    first_week,
    from_second_week,
    judge,
    show,
    show_first_week,
    show_imported_against,
    show_results,
    show_told,
)
from benchmarks.term_picture import PICTURE_ARMS, PICTURE_WEEK, draw
from benchmarks.term_playing import (
    ARMS,
    AUTOSCALERS,
    BOOKED,
    KNOWN,
    LEARNING_ARMS,
    USUAL_WEEKS,
    Job,
    Learn,
    fingerprint,
    looks_of,
    play_all,
    spread_of,
    term_of_job,
)
from benchmarks.terms import VARIANTS
from generator.faults import ValuesError
from roost_core.placement.headroom_account import LATE_SECONDS
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.sweep import run as sweep
from roost_lab.simulator.sweep.run import SweepError

IMAGES: Final = ROOT / "docs" / "images"
MOST_WEEKS: Final = 26
# Without `--arms`.
USUAL_ARMS: Final = (NONE, FIXED, IMPORTED, ORACLE)
# Of `none`, which is quickly played.
USUAL_DRAWS: Final = 6
# Arms that several hubs may have.
HUBS_ARMS: Final = (NONE, FIXED, IMPORTED)
FIRST_WEEK_ARMS: Final = (NONE, IMPORTED, BOOKED, KNOWN)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.term", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--seeds", type=_seeds, default=_seeds("1-20"), help="such as 3, 1-20 or 1,4,8-9")
    usual = f"default: {', '.join(USUAL_ARMS)}"
    add("--arms", nargs="+", choices=ARMS, metavar="ARM", help=f"{', '.join(ARMS)}; {usual}")
    of_first = f"compare the first week alone; arms: {', '.join(FIRST_WEEK_ARMS)}"
    add("--first-week", action="store_true", help=of_first)
    add("--autoscalers", nargs="+", choices=AUTOSCALERS, default=AUTOSCALERS)
    cut = f"fewer than {drawn.FEWEST_WEEKS}: the beginning of a term of {USUAL_WEEKS}"
    add("--weeks", type=_weeks, default=USUAL_WEEKS, help=f"of classes; {cut}")
    add("--variants", nargs="+", choices=VARIANTS, default=(), help="of the terms")
    zone = f"classes are at its local time. The clock of {drawn.CLOCK_CHANGES} changes in week 4"
    add("--time-zone", type=_zone, default="UTC", metavar="ZONE", help=zone)
    boot = "until a node is ready, median"
    usual_boot = Assumptions().boot_median_seconds
    add("--boot-seconds", type=_boot_seconds, default=usual_boot, metavar="S", help=boot)
    learn = "learn KEY=VALUE …: over `learn` and `prices` as `roost import` writes them"
    add("--set", dest="changes", nargs="+", default=(), metavar="WORD", help=learn)
    hubs = f"that share the nodes, each with a release; arms: {', '.join(HUBS_ARMS)}"
    add("--hubs", type=_at_least_one, default=1, metavar="N", help=hubs)
    learning = "of --hubs, so many learn; the others have no placeholders. Default: all"
    add("--learning-hubs", type=_at_least_one, metavar="N", help=learning)
    by_size = "as imported: a set for each size of seat, all on the same nodes; arms as of --hubs"
    add("--sets-by-size", action="store_true", help=by_size)
    draws = f"of chance, for the mean of `none`: replays of each seed. Default: {USUAL_DRAWS}"
    add("--draws", type=_at_least_one, default=USUAL_DRAWS, metavar="N", help=draws)
    add("--jobs", type=_at_least_one, default=sweep.usual_workers(), help="processes at once")
    add("--dask", metavar="ADDRESS", help="of a scheduler: play on its workers instead")
    kept = "keep replays in this file of JSON lines, and play only what it lacks"
    add("--results", type=Path, metavar="FILE", help=kept)
    exam = f"play an exam of {term_exam.PEOPLE} people instead, on its day alone"
    add("--exam", action="store_true", help=exam)
    add("--picture", type=int, metavar="N", help="draw the third week of this seed, and no more")
    add("--output", type=Path, default=IMAGES / "term-week.svg", help="the picture's file")
    options = parser.parse_args(arguments)
    has_one_set = options.hubs == 1 and not options.sets_by_size
    usual_arms = USUAL_ARMS if has_one_set else HUBS_ARMS
    arms = options.arms or (FIRST_WEEK_ARMS if options.first_week else usual_arms)
    options.arms = [arm for arm in ARMS if arm in arms]
    options.autoscalers = [
        autoscaler for autoscaler in AUTOSCALERS if autoscaler in options.autoscalers
    ]
    options.variants = tuple(name for name in VARIANTS if name in options.variants)
    try:
        options.learn = read_learn(options.changes)
    except ValueError as error:
        parser.error(str(error))
    if options.learn and not set(options.arms) & set(LEARNING_ARMS):
        parser.error(f"--set learn is for {', '.join(LEARNING_ARMS)}, which --arms leaves out")
    if not has_one_set and (options.exam or not set(options.arms) <= set(HUBS_ARMS)):
        named = "--hubs" if options.hubs > 1 else "--sets-by-size"
        parser.error(f"{named} is for the arms {', '.join(HUBS_ARMS)}, and not for --exam")
    if options.learning_hubs is not None and options.learning_hubs > options.hubs:
        parser.error(f"--learning-hubs: found {options.learning_hubs} of --hubs {options.hubs}")
    if options.first_week:
        if options.picture is not None:
            parser.error("--first-week has no picture")
        options.weeks = 1
    if options.exam:
        if options.first_week or options.picture is not None or options.arms != list(USUAL_ARMS):
            parser.error("--exam has no arms, and neither a picture nor a first week")
        if options.weeks < drawn.FEWEST_WEEKS or "no-exam" in options.variants:
            parser.error(f"--exam: a term of {options.weeks} weeks with these variants has none")
        if options.results is not None:
            parser.error("--exam keeps no results")
    for path in (options.results, options.output):
        if path is not None and not path.absolute().parent.is_dir():
            parser.error(f"{path}: found no folder {path.parent}")
    if options.picture is not None and options.weeks < PICTURE_WEEK:
        parser.error(f"--picture shows week {PICTURE_WEEK}: give --weeks {PICTURE_WEEK} or more")
    return options


def _fault(text: str, expected: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"found {text!r}, expected {expected}")


def _seeds(text: str) -> list[int]:
    """Seeds in rising order, each once."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = [first, last] if dash else [first]
        if not all(end.isdecimal() for end in ends) or int(ends[0]) > int(ends[-1]):
            raise _fault(text, "seeds such as 3, 1-20 or 1,4,8-9")
        found.update(range(int(ends[0]), int(ends[-1]) + 1))
    return sorted(found)


def _weeks(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= MOST_WEEKS:
        raise _fault(text, f"2 to {MOST_WEEKS} weeks: figures are from the second week on")
    return int(text)


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise _fault(text, "a whole number of at least 1")
    return int(text)


def _boot_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    longest = Assumptions().give_up_boot_seconds
    if not 0 < seconds <= longest:
        raise _fault(text, f"seconds above 0 and up to {longest:g}, when autoscalers give up")
    return seconds


def _zone(text: str) -> str:
    try:
        drawn.zone_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def read_learn(words: Sequence[str]) -> tuple[Learn, ...]:
    """Changes of `learn max=60 monthlyCeiling=20`. Raises ValueError for other words.

    Keys and values are checked as those of any values file are, when they are rendered.
    """
    if not words:
        return ()
    first, *pairs = words
    if first != "learn" or not pairs:
        raise ValueError(f"--set {' '.join(words)}: expected `--set learn KEY=VALUE …`")
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise ValueError(f"--set learn: found {pair!r}, expected KEY=VALUE")
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            read = None
        is_scalar = isinstance(read, str | int | float)
        if not is_scalar:
            raise ValueError(f"--set learn {key}: found {value!r}, expected a number or a text")
        if key == "timeZone":
            drawn.zone_of(str(read))
        found[key] = read
    return tuple(Learn(key, found[key]) for key in sorted(found))


def jobs_of(options: argparse.Namespace) -> list[Job]:
    """What to play, one seed after the other."""
    jobs = []
    for seed in options.seeds:
        for autoscaler in options.autoscalers:
            for arm in options.arms:
                job = _job(options, seed, arm, autoscaler)
                jobs += [replace(job, draw=draw) for draw in range(_draws_of(options, arm))]
    return jobs


def _draws_of(options: argparse.Namespace, arm: str) -> int:
    """How often an arm of a seed is played."""
    is_compared = arm == NONE and IMPORTED in options.arms and not options.first_week
    return options.draws if is_compared else 1


def _job(options: argparse.Namespace, seed: int, arm: str, autoscaler: str) -> Job:
    return Job(
        seed=seed,
        arm=arm,
        autoscaler=autoscaler,
        weeks=options.weeks,
        variants=options.variants,
        time_zone=options.time_zone,
        boot_seconds=options.boot_seconds,
        learn=options.learn if arm in LEARNING_ARMS else (),
        hubs=options.hubs,
        learning_hubs=options.learning_hubs,
        sets_by_size=options.sets_by_size,
        code=fingerprint(),
    )


class Progress:
    """Says on stderr what ended, and how many replays that are."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0

    def begin(self, kept: int) -> None:
        """So many replays are known from earlier runs."""
        self._ended = kept
        if kept:
            say(f"  {kept}/{self._total} were played before")

    def end(self, job: Job, run: Run) -> None:
        """One more replay ended."""
        self._ended += 1
        is_whole = len(run.weeks) > 1
        period, which = (run.later, "from week 2 on") if is_whole else (run.weeks[0], "in week 1")
        waits = period.exam_apart
        figures = f"late {waits.late_percent:.2f} %, p95 {waits.p95:.1f} s {which}"
        hours = f"{period.node_hours:,.0f} node-hours"
        say(f"  {self._ended}/{self._total} {job}: {figures}, {hours}; {run.seconds:.0f} s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print the tables, and judge; or draw."""
    options = _options(arguments)
    try:
        if options.picture is not None:
            return _draw_picture(options)
        if options.exam:
            return _play_exams(options)
        return _compare(options)
    except ValuesError as error:
        # Their file is one of ours, that the reader never saw.
        for fault in error.faults:
            say(str(fault._replace(file="--set learn" if options.learn else "values", line=0)))
    except (OSError, SweepError, ValueError) as error:
        say(str(error))
    return 2


def _compare(options: argparse.Namespace) -> int:
    jobs = jobs_of(options)
    progress = Progress(len(jobs))
    spread = spread_of(options.jobs, options.dask)
    done = play_all(jobs, spread, options.results, begin=progress.begin, report=progress.end)
    runs: dict[str, dict[str, dict[int, Run]]] = {}
    for job in jobs:
        by_seed = runs.setdefault(job.autoscaler, {}).setdefault(job.arm, {})
        if job.draw == 0:
            by_seed[job.seed] = done[job]
        else:
            first = by_seed[job.seed]
            by_seed[job.seed] = replace(first, other_draws=(*first.other_draws, done[job]))
    if options.first_week:
        print(f"First week:\n\n{show_first_week(runs)}")
        return 0
    print(f"First week, exam apart:\n\n{show(runs, first_week)}\n")
    print(f"From the second week on, exam apart:\n\n{show(runs, from_second_week)}\n")
    if against := show_imported_against(runs):
        print(f"From the second week on, with the exam:\n\n{against}\n")
    results = judge(runs)
    if results:
        if told := show_told(runs):
            print(f"Learning over the whole term, told by the controllers:\n\n{told}\n")
        print(f"Goals, from the second week on, as imported:\n\n{show_results(results)}")
    return 0 if all(result.is_kept for result in results) else 1


def _draw_picture(options: argparse.Namespace) -> int:
    autoscaler = options.autoscalers[0]
    jobs = {arm: _job(options, options.picture, arm, autoscaler) for arm in PICTURE_ARMS}
    weeks = {arm: looks_of(job) for arm, job in jobs.items()}
    options.output.write_text(draw(term_of_job(jobs[NONE]), weeks), encoding="utf-8")
    for arm, played in weeks.items():
        waits = played.waits
        say(f"{arm}: {waits.starts} starts, late {waits.late_percent:.2f} %, p95 {waits.p95:.1f} s")
    return 0


def _play_exams(options: argparse.Namespace) -> int:
    jobs = [
        term_exam.ExamJob(
            seed=seed,
            case=case,
            autoscaler=autoscaler,
            weeks=options.weeks,
            variants=options.variants,
            time_zone=options.time_zone,
            boot_seconds=options.boot_seconds,
            learn=options.learn,
            code=fingerprint(),
        )
        for autoscaler in options.autoscalers
        for case in term_exam.CASES
        for seed in options.seeds
    ]

    def report(job: term_exam.ExamJob, outcome: term_exam.Outcome) -> None:
        late = f"{outcome.later_than_30} later than {LATE_SECONDS:.0f} s"
        say(f"  {job}: of {outcome.people} {late}, {outcome.without_server} without a server")

    found = term_exam.play_exams(jobs, spread_of(options.jobs, options.dask), report)
    print(f"Exam, its day alone:\n\n{term_exam.show_exams({job: found[job] for job in jobs})}")
    return 0


if __name__ == "__main__":
    # Workers find this module's functions under its name, not as __main__.
    sys.exit(import_module("benchmarks.term").main())
