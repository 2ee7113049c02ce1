"""Say what `roost import`'s proposals would have done with a hub's own launches, by replaying them."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generator.faults import UsageError
from roost_lab.recorder.answers.exports import launch_lines
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.simulator.sweep.verdict import describe, helps, judge, latest
from roost_lab.traces.counts import TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# How long proposals are replayed at most, about.
REPLAY_SECONDS: Final = 60.0
_SQLITE: Final = b"SQLite format 3\0"


def judge_proposals(
    values: str, proposals: Sequence[Mapping[str, Any]], instead: Mapping[str, Any] | None, history: str
) -> tuple[list[str], bool]:
    """A sentence for each proposal: what it alone would have done with a history; and whether `instead` helps.

    values: the imported ones, as YAML. proposals: what each lays over them. instead: values of another proposal, which
    must help beside the first of the others that has placeholders. history: a record's database, or a launch trace.
    Raises UsageError for a history that can't be read, or a hub that doesn't fit the usual nodes.
    """
    tried = [*proposals, *([] if instead is None else [instead])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            attempts = latest(trace_of((_trace_file(history, Path(folder)),)))
        except (TraceError, StoreError) as error:
            raise UsageError(f"--history: {error}") from None
        try:
            now, *after = judge(_policies(values, tried, Path(folder)), attempts, REPLAY_SECONDS, time.monotonic)
        except AssumptionsError as error:
            raise UsageError(f"--history: not replayed, because the hub doesn't fit the usual nodes: {error}") from None
    fixed = next((score for one, score in zip(proposals, after, strict=False) if "placeholders" in one), now)
    return [describe(now, score, len(attempts)) for score in after], instead is not None and helps(fixed, after[-1])


def _policies(values: str, tried: Sequence[Mapping[str, Any]], folder: Path) -> list[Policy]:
    """The imported values, then each proposal laid over them."""
    now = folder / "values.yaml"
    now.write_text(values, encoding="utf-8")
    policies = [load_policy("today", [str(now)])]
    for place, proposal in enumerate(tried):
        more = folder / f"more-{place}.yaml"
        more.write_text(json.dumps(proposal), encoding="utf-8")
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
    launches = folder / "launches.jsonl"
    with contextlib.closing(Store.open_for_reading(history)) as store, launches.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in launch_lines(store))
    return str(launches)
