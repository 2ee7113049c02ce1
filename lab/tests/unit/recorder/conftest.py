from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.tests.recorded import empty_store, story_records
from roost_lab.report.gather import gather
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.fixtures import give_up
from tests.harness.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from roost_lab.report.subject import Report


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A real PostgreSQL."""
    server = Postgres()
    try:
        server.start()
    except HarnessUnavailableError as error:
        give_up(error)
    yield server
    server.stop()


@pytest.fixture
def report(tmp_path: Path) -> Report:
    store = empty_store(tmp_path)
    store.write(story_records(), {})
    return gather(store)
