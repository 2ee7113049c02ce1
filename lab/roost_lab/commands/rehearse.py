"""`roost rehearse`: play a booked event's day before it comes, and say what its people will wait
and what it costs. With `--past`: play a hub's last weeks, and say whether Roost helps.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import click

from generator.faults import UsageError
from generator.importing.culling import Culling, read_culling
from generator.values.merge import SetOptions
from roost.commands.hub_values import read_hub
from roost.commands.prometheus import read_usage
from roost_lab.booking.entry import entry_of, event_options
from roost_lab.commands.options import refuse
from roost_lab.packed_files import (
    DAMAGES,
    UNPACKS_WITHOUT_END,
    UnpacksWithoutEndError,
    find_other_packing,
    is_packed,
    unpacked,
)
from roost_lab.simulator.setup.checks import AssumptionsError, make_assumptions, read_assumption
from roost_lab.simulator.sweep.rehearsal import rehearse
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.simulator.sweep.verdict import Past, judge
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.counts import TraceError
from roost_lab.units import US

# A year of a hub with 5,000 starts a day has about 400 MiB.
MOST_UNPACKED_BYTES = 2**30
_CHUNK_BYTES = 2**20
# The image of every server, where nothing says which it had.
_ONE_IMAGE = "of-the-hub"


def past_of(source: str, namespace: str) -> Past:
    """A past of Prometheus, of `roost records export`, or of what `roost records import` reads.

    Raises UsageError.
    """
    if "://" in source:
        return _of_prometheus(source, namespace, source)
    with tempfile.TemporaryDirectory() as folder:
        # What is read: the source, or a temporary copy of it. Faults name what was given, not the
        # copy.
        path = source
        try:
            path = str(_unpacked(source, folder))
            with Path(path).open("rb") as file:
                head = file.read(1 << 16)
            if b'"resultType"' in head:
                return _of_prometheus(path, namespace, source)
            if b'/launch"' in head:
                return list(trace_of((path,)).open(seed=1)), ()
            return _of_history(path, folder)
        except OSError as error:
            raise UsageError(
                f"--past: {source}: {error.strerror}, expected a file that can be read"
            ) from None
        except (UsageError, TraceError) as error:
            raise UsageError(str(error).replace(path, source)) from None


def culling_of(files: Sequence[str]) -> Culling | None:
    """How a hub ends servers, by its own values; None without files, or where it can't be read.

    Raises ValuesError for files that hold no hub.
    """
    hub = read_hub(files)
    if hub is None:
        return None
    culling = read_culling(hub)
    if culling is None:
        sys.stderr.write("--hub-values: cull isn't in whole seconds, so it isn't played\n")
    return culling


def _unpacked(source: str, folder: str) -> Path:
    """The file, or its content in the folder: of a pipe, which can be read once, and of gzip."""
    path = Path(source)
    if source == "-" or path.is_fifo():
        data = sys.stdin.buffer.read() if source == "-" else path.read_bytes()
        path = Path(folder, "past")
        path.write_bytes(data)
    with path.open("rb") as file:
        other = find_other_packing(file)
        if other:
            raise UsageError(
                f"--past: {source}: found {other.kind}, expected text or gzip. Unpack it:"
                f" {other.unpack} FILE > past, and give --past past"
            )
        if not is_packed(file):
            return path
        content = Path(folder, "unpacked")
        with content.open("wb") as copy:
            _copy(unpacked(file), copy, source)
    return content


def _copy(packed: BufferedIOBase, copy: BufferedIOBase, source: str) -> None:
    """Copy what is unpacked, as far as it can be read. Raises UsageError if it is too much."""
    left = MOST_UNPACKED_BYTES
    try:
        while chunk := packed.read(min(_CHUNK_BYTES, left + 1)):
            left -= len(chunk)
            if left < 0:
                raise UsageError(
                    f"--past: {source}: found more than {MOST_UNPACKED_BYTES // 2**20} MiB once"
                    " unpacked, expected less: unpack it, and give the weeks that count"
                )
            copy.write(chunk)
    except UnpacksWithoutEndError:
        raise UsageError(
            f"--past: {source}: found {UNPACKS_WITHOUT_END}, expected text. If it is one, unpack it"
            " yourself, and give that"
        ) from None
    except DAMAGES:
        sys.stderr.write(
            f"{source}: the compressed data breaks off or is damaged; what comes before it is"
            " played\n"
        )


def _of_prometheus(source: str, namespace: str, shown: str) -> Past:
    """What Prometheus says. shown: what was given, of which `source` may be a temporary copy."""
    usage = read_usage(source, namespace)
    sys.stderr.write("".join(f"{note.replace(source, shown)}\n" for note in usage.notes))
    attempts = [
        Attempt(
            number=number,
            moment=begin,
            repository="",
            image=_ONE_IMAGE,
            session_seconds=end - begin,
        )
        for number, (begin, end) in enumerate(usage.sessions)
    ]
    return attempts, usage.minutes_seen


def _of_history(path: str, folder: str) -> Past:
    """What `roost records import` reads: Events, pods, an audit log, a hub's log."""
    # These modules load SQLAlchemy, which no other rehearsal needs.
    from roost_lab.recorder.exporting.exports import launch_lines  # noqa: PLC0415
    from roost_lab.recorder.importing.files import Counts, UnreadableError, read_values  # noqa: PLC0415
    from roost_lab.recorder.importing.history import ImportedHistory  # noqa: PLC0415
    from roost_lab.recorder.importing.hub_log import arrivals_us  # noqa: PLC0415
    from roost_lab.recorder.importing.wrappers import HUB_NEWS, find_objects  # noqa: PLC0415
    from roost_lab.recorder.store.database import Store, StoreError  # noqa: PLC0415

    try:
        store = Store.open(f"{folder}/history.db")
        store.migrate()
        ImportedHistory(store).read([path])
        hub_news: list[Any] = []
        for value, _ in read_values(path, Counts()):
            hub_news += [item for kind, item in find_objects(value) if kind == HUB_NEWS]
        # When servers were asked for, by a hub's log.
        begins_us = arrivals_us(hub_news)
        lines = [*launch_lines(store)]
    except (StoreError, UnreadableError) as error:
        raise UsageError(f"--past: {error}") from None
    if not lines and begins_us:
        sys.stderr.write(
            "A hub's log doesn't say how long servers run: --assume sessions=short, mid or long\n"
        )
        attempts = [
            Attempt(number=number, moment=at_us / US, repository="", image=_ONE_IMAGE)
            for number, at_us in enumerate(begins_us)
        ]
        return attempts, ()
    if not lines:
        accepted = (
            "Prometheus' JSON, launches of roost records export, Events, pods, an audit or"
            " hub's log"
        )
        raise UsageError(f"--past: {path}: found no user's pod, expected {accepted}")
    launches = Path(folder, "launches")
    launches.write_text("\n".join(lines), encoding="utf-8")
    try:
        return list(trace_of((str(launches),)).open(seed=1)), ()
    except TraceError as error:
        # As in past_of: not the temporary file.
        raise UsageError(f"--past: {error}".replace(str(launches), path)) from None


def _refuse_of_event(given: Mapping[str, float | str | None]) -> None:
    """Refuse options of a booked day; None and "": not given. Raises UsageError."""
    names = [
        "--placeholders" if name == "set" else f"--{name}"
        for name, value in given.items()
        if value is not None and value != ""
    ]
    if names:
        raise UsageError(f"--past: leave out {', '.join(names)}: only a booked day has that")


@click.command("rehearse")
@event_options
@click.option(
    "-f", "--values", "files", metavar="FILE", multiple=True, help="Values; later files win."
)
@click.option(
    "--set", "values", metavar="KEY=VALUE", multiple=True, help="As Helm's --set, one key: a.b=c."
)
@click.option(
    "--launches",
    type=click.FloatRange(0, 1e6),
    help="Made-up launches a day beside the event's. Default: 2000.",
)
@click.option(
    "--assume",
    "assumptions",
    metavar="NAME=VALUE",
    multiple=True,
    help="As --set of `roost simulate`: nodes, pulls, …",
)
@click.option(
    "--seeds", type=click.IntRange(1, 100), help="Replays of each. Default: 5, of the past 1."
)
@click.option(
    "--absent",
    metavar="SHARE",
    type=click.FloatRange(0, 1, max_open=True),
    help="Play it seated, too: all PEOPLE are listed, and this share of them doesn't come.",
)
@click.option(
    "--past",
    metavar="URL|FILE",
    help=(
        "Whether Roost helps, by a hub's past: Prometheus, its answer, launches, Events, or its"
        " log."
    ),
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="default",
    show_default=True,
    help="With --past: the hub's.",
)
@click.option(
    "--hub-values",
    "hub_files",
    metavar="FILE",
    multiple=True,
    help="With --past: the hub's own values, to say what an earlier end of idle servers saves.",
)
def command(
    *,
    people: int | None,
    when: tuple[str, ...],
    files: tuple[str, ...],
    values: tuple[str, ...],
    assumptions: tuple[str, ...],
    past: str | None,
    namespace: str,
    hub_files: tuple[str, ...],
    seeds: int | None,
    launches: float | None,
    absent: float | None,
    **words: str,
) -> int:
    """Play the hours around an event twice, with and without the booking, and say in a
    sentence what comes of it.

    PEOPLE and WHEN are as for `roost book`.

    \b
    roost rehearse 120 2026-11-24 9:00 -f values.yaml --zone Europe/Berlin \\
        --image quay.io/me/course:1
    # Does Roost help this hub?
    roost rehearse --past http://localhost:9090 -n jhub -f values.yaml
    """
    try:
        given = dict(read_assumption(text, "--assume") for text in assumptions)
        assumed = make_assumptions(given, "--assume")
        if hub_files and not past:
            raise UsageError("--hub-values: found no --past, with which it is")
        if past and people is not None:
            raise UsageError("--past: found PEOPLE as well, expected one of them")
        options = SetOptions(values=values)
        if past:
            _refuse_of_event({"launches": launches, "absent": absent, **words})
            culling = culling_of(hub_files)
            launched = past_of(past, namespace)
            sys.stderr.write("Playing the last two weeks, which takes a minute or more\n")
            text = judge(launched, files, options, given, seeds or 1, culling=culling)
        else:
            rehearsal = rehearse(
                entry_of(people, when, name="rehearsal", **words),
                files,
                options,
                assumed,
                seeds=seeds or 5,
                launches=2000.0 if launches is None else launches,
                absent=absent,
            )
            sentences = f"{rehearsal.sentence()}\n{rehearsal.seated_sentence()}"
            text = f"{sentences}{rehearsal.rows()}"
    except AssumptionsError as error:
        return refuse("rehearse", error)
    sys.stdout.write(text)
    return 0
