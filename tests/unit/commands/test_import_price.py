"""`roost import --price` says in money what it says in node-hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.importing.money import MONTH_HOURS, node_hours, set_node_price
from generator.values.files import parse_values
from generator.values.lookups import child
from roost import __main__ as entry


@given(
    least=st.integers(0, 50),
    more=st.integers(0, 50),
    price=st.floats(0.01, 100),
    words=st.sampled_from(["more", "of", "fewer"]),
)
def test_each_share_of_node_hours_is_followed_by_its_money(
    least: int, more: int, price: float, words: str
) -> None:
    share = f"{least} to {least + more} % {words} node-hours"
    text = node_hours(least, least + more, words, price)
    most_money = f"{(least + more) / 100 * MONTH_HOURS * price:,.2f} a month for each node)"
    assert text.startswith(f"{share} ({least / 100 * MONTH_HOURS * price:,.2f} to ")
    assert text.endswith(most_money)
    assert node_hours(least, least + more, words, None) == share


def test_other_values_stay_as_they_were() -> None:
    values: dict[str, object] = {"placeholder": {"defaults": {"prices": {"waitingHour": 9}}}}
    set_node_price(values, 0.25)
    assert values == {"placeholder": {"defaults": {"prices": {"waitingHour": 9, "nodeHour": 0.25}}}}


def test_import_writes_the_price_and_says_money(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = tmp_path / "hub.yaml"
    hub.write_text("singleuser: {image: {name: a/b, tag: '1'}, memory: {guarantee: 1G}}\n")
    assert entry.main(["import", str(hub)]) == 0
    plain = capsys.readouterr().err
    assert entry.main(["import", "--price", "0.5", str(hub)]) == 0
    written, priced = capsys.readouterr()
    values = parse_values(written.encode(), "values.yaml").values
    assert child(values, "placeholder", "defaults", "prices", "nodeHour") == 0.5
    assert "a month for each node" not in plain
    shares = plain.count(" % more node-hours") + plain.count(" % of node-hours")
    assert priced.count("a month for each node") == shares > 0


@pytest.mark.parametrize("price", ["0", "-1", "much"])
def test_a_price_is_above_zero(price: str, tmp_path: Path) -> None:
    hub = tmp_path / "hub.yaml"
    hub.write_text("{}")
    assert entry.main(["import", "--price", price, str(hub)]) == 2
