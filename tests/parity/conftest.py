"""What several tests of this folder ask for, made once."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from roost_core.objects.fields import JSONObject
from tests.harness.fixtures import require_binary
from tests.parity.monitored import dashboard_of, render_all


@pytest.fixture(scope="session")
def helm() -> Path:
    return require_binary("helm")


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Sequence[JSONObject]:
    return render_all(tmp_path_factory.mktemp("values"))


@pytest.fixture(scope="session")
def dashboard(objects: Sequence[JSONObject]) -> JSONObject:
    return dashboard_of(objects)
