"""`roost import`: zero-to-jupyterhub's or BinderHub's values to Roost's."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generator.faults import Fault, UsageError, ValuesError
from generator.importing.importer import import_layers
from generator.importing.proposals import print_pointer, print_proposals, propose, propose_learned
from generator.values.files import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from generator.importing.proposals import Proposal
    from roost_lab.simulator.setup.policy import Policy

# How long proposals are replayed at most, about.
REPLAY_SECONDS: Final = 60.0
_SQLITE: Final = b"SQLite format 3\0"


def run(
    files: Sequence[str], release: str, hub: str | None = None, *, spawn_page: bool = False, history: str | None = None
) -> int:
    """Print the values to stdout, with proposals as comments below, and the report of the import to stderr.

    spawn_page: print the lines for the hub's own values instead, and no report. history: a record's database, or a
    launch trace; each proposal then says what it would have done with it.
    """
    layers = [(file, read_file(file)) for file in files]
    result = import_layers(layers, release, hub)
    if spawn_page:
        if not result.spawn_page:
            fix = "Name the hub's own file, too."
            raise ValuesError([Fault(result.filename, 0, "", "no hub", "values of zero-to-jupyterhub", fix)])
        sys.stdout.write(result.spawn_page)
        return 0
    values = result.to_yaml()
    proposals = propose(result, layers, release, hub)
    said: Sequence[str] = ()
    if history is not None:
        proposals, said = _replayed(values, proposals, propose_learned(result, proposals), history)
    sys.stdout.write(values + print_proposals(proposals, said))
    sys.stderr.write(result.report() + print_pointer(proposals, inert=result.is_inert))
    return 0


def _replayed(
    values: str, proposals: Sequence[Proposal], learned: Proposal | None, history: str
) -> tuple[list[Proposal], list[str]]:
    """The proposals, and what each alone would have done with a history; "" where launches can't tell.

    learned: it becomes a proposal if it helps beside the number of placeholders that it would replace.
    Raises UsageError for a history that can't be read.
    """
    # Only whoever asks for it needs the simulator and the database.
    from roost_lab.recorder.store.database import StoreError  # noqa: PLC0415
    from roost_lab.simulator.setup.checks import AssumptionsError  # noqa: PLC0415
    from roost_lab.simulator.sweep.survey import trace_of  # noqa: PLC0415
    from roost_lab.simulator.sweep.verdict import describe, helps, judge, latest  # noqa: PLC0415
    from roost_lab.traces.counts import TraceError  # noqa: PLC0415

    told = [proposal for proposal in proposals if proposal.is_replayed]
    others = [proposal for proposal in proposals if not proposal.is_replayed]
    tried = [*told, learned] if learned else told
    if not tried:
        return others, []
    with tempfile.TemporaryDirectory() as folder:
        try:
            attempts = latest(trace_of((_trace_file(history, Path(folder)),)))
        except (TraceError, StoreError) as error:
            raise UsageError(f"--history: {error}") from None
        try:
            now, *after = judge(_policies(values, tried, Path(folder)), attempts, REPLAY_SECONDS, time.monotonic)
        except AssumptionsError as error:
            sys.stderr.write(f"--history: not replayed, because the hub doesn't fit the usual nodes: {error}\n")
            return list(proposals), []
    if learned:
        fixed = next((score for one, score in zip(told, after, strict=False) if "placeholders" in one.values), now)
        if helps(fixed, after[-1]):
            told.append(learned)
    said = [describe(now, score, len(attempts)) for _, score in zip(told, after, strict=False)]
    return [*told, *others], [*said, *("" for _ in others)]


def _policies(values: str, tried: Sequence[Proposal], folder: Path) -> list[Policy]:
    """The imported values, then each proposal laid over them."""
    from roost_lab.simulator.setup.policy import load_policy  # noqa: PLC0415 - as above

    now = folder / "values.yaml"
    now.write_text(values, encoding="utf-8")
    policies = [load_policy("today", [str(now)])]
    for place, proposal in enumerate(tried):
        more = folder / f"more-{place}.yaml"
        more.write_text(json.dumps(proposal.values), encoding="utf-8")
        policies.append(load_policy(f"more-{place}", [str(now), str(more)]))
    return policies


def _trace_file(history: str, folder: Path) -> str:
    """The history as a file of launches: a database's are written to one. Raises StoreError."""
    if "://" not in history:
        path = Path(history)
        try:
            with path.open("rb") as file:
                is_database = file.read(len(_SQLITE)) == _SQLITE
        except OSError as error:
            raise UsageError(f"--history: {history}: {error.strerror}") from None
        if not is_database:
            return history
    from roost_lab.recorder.answers.exports import launch_lines  # noqa: PLC0415 - as above
    from roost_lab.recorder.store.database import Store  # noqa: PLC0415

    launches = folder / "launches.jsonl"
    with contextlib.closing(Store.open_for_reading(history)) as store, launches.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in launch_lines(store))
    return str(launches)
