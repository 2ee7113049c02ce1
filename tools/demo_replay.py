"""Replay made-up launches under two policies, and write the page that shows them side by side, for
`make demo`.

.venv/bin/python -m tools.demo_replay FOLDER PAGE

It does in one process, and so sooner, what `roost simulate --record FOLDER` and `roost view
--output PAGE` do.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from roost_lab.recorder.store.database import Store
from roost_lab.simulator.sweep.recording import record_files, record_job
from roost_lab.simulator.sweep.request import load_policies, make_worlds
from roost_lab.simulator.sweep.run import make_jobs
from roost_lab.simulator.sweep.survey import trace_of
from roost_lab.view.reading import RecordSource
from roost_lab.view.server import common_time
from roost_lab.view.shareable import make_file

POLICIES: Final = ("z2jh-placeholders-packed", "roost")
DAYS: Final = 0.08
# Fewer than in a file that one asks for: the slow starts have moments of their own.
MOMENTS: Final = 60


def replayed(folder: Path, days: float) -> list[Store]:
    """Records of made-up launches under both policies."""
    files = record_files(folder, POLICIES)
    policies, _ = load_policies(POLICIES, ())
    worlds = [(world.setting, world.assumptions) for world in make_worlds()]
    for file, job in zip(files, make_jobs(policies, [1], worlds, trace_of((), days)), strict=True):
        record_job(file, job)
    return [Store.open_for_reading(str(file)) for file in files]


def main(folder: Path, page: Path) -> int:
    """Replay and write."""
    stores = replayed(folder, DAYS)
    sources = [RecordSource(store) for store in stores]
    span = common_time(sources)
    if span is None:
        raise SystemExit("the records have no time in common")
    page.write_text(make_file(sources, POLICIES, span, MOMENTS), encoding="utf-8")
    for store in stores:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
