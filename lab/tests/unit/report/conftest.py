from pathlib import Path

import pytest

from lab.tests.recorded import empty_store, story_records
from roost_lab.report.gather import gather
from roost_lab.report.subject import Report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    store = empty_store(tmp_path)
    store.write(story_records(), {})
    return gather(store)
