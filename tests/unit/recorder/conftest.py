from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from roost.recorder.report.gather import gather
from tests.recorded import empty_store, story_records

if TYPE_CHECKING:
    from pathlib import Path

    from roost.recorder.report.subject import Report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    store = empty_store(tmp_path)
    store.write(story_records(), {})
    return gather(store)
