"""The first command of README in a checkout that has nothing yet."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.root import ROOT

pytestmark = pytest.mark.e2e


def test_make_demo_sets_up_what_it_needs_and_shows_roost_at_work(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(
        ROOT,
        clone,
        ignore=shutil.ignore_patterns(
            ".*_cache", ".hypothesis", "__pycache__", ".venv", "build", ".git"
        ),
    )
    # What this test run has on its paths is not there on a fresh machine.
    environment = {
        key: text
        for key, text in os.environ.items()
        if key not in {"PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS"}
    }
    found = subprocess.run(
        ["make", "demo"], cwd=clone, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
    assert "Done" in found.stdout
    assert {page.name for page in (clone / "build" / "demo").glob("*.html")} == {
        "replay.html",
        "report.html",
    }
