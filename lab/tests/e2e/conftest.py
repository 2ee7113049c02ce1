import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A browser for tests of pages."""
    browser = pytest.importorskip(
        "tests.harness.browser", reason="no Selenium: make setup installs it"
    )
    if missing := browser.missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    with browser.open_browser() as opened:
        yield opened
