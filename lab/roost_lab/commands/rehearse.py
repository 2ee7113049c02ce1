"""`roost rehearse`: play a booked event's day before it comes, and say what its people will wait and what it costs."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from generator.faults import UsageError
from generator.values.merge import Settings
from roost.commands.prometheus import read_usage
from roost_lab.booking import entry_of, event_options
from roost_lab.recorder.answers.exports import launch_lines
from roost_lab.recorder.importing.files import Counts, UnreadableError, read_values
from roost_lab.recorder.importing.history import ImportedHistory
from roost_lab.recorder.recording.hub_log import HubNews
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.simulator.setup.checks import AssumptionsError, make_assumptions, read_assumption
from roost_lab.simulator.sweep.rehearsal import rehearse
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.simulator.sweep.verdict import Past, judge
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.counts import TraceError


def past_of(source: str, namespace: str, shown: str) -> Past:
    """A past of Prometheus, of `roost records export`, or of what `roost records import` reads."""
    file = Path(source)
    if source == "-" or file.is_fifo():
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "past")
            copy.write_bytes(sys.stdin.buffer.read() if source == "-" else file.read_bytes())
            try:
                return past_of(str(copy), namespace, shown)
            except (UsageError, UnreadableError, TraceError) as error:
                raise UsageError(str(error).replace(str(copy), shown)) from None
    head = b'"resultType"' if "://" in source else file.read_bytes()[: 1 << 16] if file.is_file() else b""
    if b'"resultType"' in head:
        sessions, seen, told = read_usage(source, namespace)
        sys.stderr.write("".join(f"{line.replace(source, shown)}\n" for line in told))
        return [Attempt(n, at, "", "of-the-hub", None, end - at) for n, (at, end) in enumerate(sessions)], seen
    with tempfile.TemporaryDirectory() as folder:
        if b'/launch"' not in head and not head.startswith(b"\x1f\x8b"):
            store = Store.open(f"{folder}/history.db")
            store.migrate()
            ImportedHistory(store).read([source])
            news = [one for one, _ in read_values(source, Counts()) if isinstance(one, HubNews) and one.span_us]
            if not (lines := [*launch_lines(store)]) and news:
                sys.stderr.write("A hub's log doesn't say how long servers run: --assume sessions=short, mid or long\n")
                begins = sorted((one.when.at_us - (one.span_us or 0)) / 1e6 for one in news)
                return [Attempt(n, at, "", "of-the-hub") for n, at in enumerate(begins)], ()
            if not lines:
                accepted = "Prometheus' JSON, launches of roost records export, Events, pods, an audit or hub's log"
                raise UsageError(f"--past: {source}: found no user's pod, expected {accepted}")
            source = f"{folder}/launches"
            Path(source).write_text("\n".join(lines), encoding="utf-8")
        return list(trace_of((source,)).open(1)), ()


@click.command("rehearse")
@event_options
@click.option("-f", "--values", "files", metavar="FILE", multiple=True, help="Values; later files win.")
@click.option("--set", "values", metavar="KEY=VALUE", multiple=True, help="As Helm's --set, one key: a.b=c.")
@click.option(
    "--launches",
    type=click.FloatRange(0, 1e6),
    default=2000,
    show_default=True,
    help="Made-up launches a day beside the event's.",
)
@click.option(
    "--assume", "assumptions", metavar="NAME=VALUE", multiple=True, help="As --set of `roost simulate`: nodes, pulls, …"
)
@click.option("--seeds", type=click.IntRange(1, 100), help="Replays of each. Default: 5, of the past 1.")
@click.option(
    "--past",
    metavar="URL|FILE",
    help="Whether Roost helps, by a hub's past: Prometheus, its answer, launches, Events, or its log.",
)
@click.option("-n", "--namespace", metavar="NAME", default="default", show_default=True, help="With --past: the hub's.")
def command(
    *,
    people: int | None,
    when: tuple[str, ...],
    zone: str,
    placeholders: str,
    image: str,
    files: tuple[str, ...],
    values: tuple[str, ...],
    assumptions: tuple[str, ...],
    past: str | None,
    namespace: str,
    seeds: int | None,
    **days: Any,  # noqa: ANN401 - click's
) -> int:
    """Play the hours around an event twice, with and without the booking, and say in a sentence what comes of it.

    PEOPLE and WHEN are as for `roost book`.

    \b
    roost rehearse 120 2026-11-24 9:00 -f values.yaml --zone Europe/Berlin --image quay.io/me/course:1
    roost rehearse --past http://localhost:9090 -n jhub -f values.yaml    # does Roost help this hub?
    """
    try:
        given = dict(read_assumption(text, "--assume") for text in assumptions)
        assumed = make_assumptions(given, "--assume")
        if past and people is not None:
            raise UsageError("--past: found PEOPLE as well, expected one of them")
        if past:
            launched = past_of(past, namespace, past)
            sys.stderr.write("Playing the last two weeks, which takes a minute or more\n")
            sys.stdout.write(judge(launched, files, Settings(values=values), given, seeds or 1))
            return 0
        entry = entry_of(people, when, image=image, placeholders=placeholders, zone=zone, name="rehearsal")
        found = rehearse(entry, files, Settings(values=values), assumed, seeds=seeds or 5, **days)
    except (AssumptionsError, TraceError, StoreError, UnreadableError) as error:
        for line in str(error).splitlines():
            print(f"roost rehearse: {line}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    sys.stdout.write(f"{found.sentence()}\n{found.rows()}")
    return 0
