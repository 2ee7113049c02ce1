import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.tests.recorded import empty_database
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.schema import POSTGRESQL, SQLITE
from tests.harness.fixtures import or_give_up
from tests.harness.postgres import Postgres

TEMPLATE = "empty"


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A real PostgreSQL."""
    with or_give_up(), Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def template(server: Postgres) -> Postgres:
    """The server, with an empty database of our schema to be copied."""
    store = Store.open(server.create(TEMPLATE))
    store.migrate()
    store.close()
    return server


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Makes an empty store each time it's called: every test runs on both databases."""
    server: Postgres | None = (
        request.getfixturevalue("template") if request.param == POSTGRESQL else None
    )
    stores: list[Store] = []
    numbers = itertools.count(1)

    def make() -> Store:
        name = f"roost{next(numbers)}"
        if server is None:
            path = tmp_path / f"{name}.db"
            path.write_bytes(empty_database())
            stores.append(Store.open(str(path)))
        else:
            server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"')
            stores.append(Store.open(server.url(name)))
        return stores[-1]

    yield make
    for store in stores:
        store.close()
        if server is not None:
            server.drop(str(store.engine.url.database))


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    """An empty store: every test runs on both databases."""
    return open_store()
