"""Databases that can't be used, and rows that they don't take, are said in a sentence without any password."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recorder.store import Refused, Store, StoreError
from tests.recorded import empty_store, pod_record

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:secret@h:port/x",
        "postgresql://[::1",
        "postgresql://u:sec/ret@h:5432:secret/x",
        "sqlite:///roost.db?timeout=secret",
        "sqlite:///roost.db?check_same_thread=secret",
        "sqlite+secret:///roost.db",
        "postgresql://u@h/x?port=5,6&host=secret",
    ],
)
def test_a_url_that_cannot_be_read_is_said_without_any_of_it(url: str) -> None:
    with pytest.raises(StoreError, match="the database's URL can't be read: give a file, or postgresql://") as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)
    assert "sec" not in str(caught.value)


def test_what_only_the_driver_refuses_of_a_url_is_said_without_any_of_it(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/roost.db?cached_statements={10**30}")
    with pytest.raises(StoreError, match="the database's URL can't be read") as caught:
        store.migrate()
    assert "int" not in str(caught.value)


def test_a_text_that_the_database_cannot_take_is_refused_and_nothing_of_its_batch_is_stored(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    with pytest.raises(Refused):
        store.write([pod_record("a"), pod_record("b", name="\ud800")], {})
    assert not store.known().pods
    store.close()
