"""What shares of node-hours are in money, once the price of a node-hour is known."""

from __future__ import annotations

import re
from typing import Final

from generator.checks.contract import mapping

# Hours of a month, as clouds bill them.
MONTH_HOURS: Final = 730.0
# "1 to 10 % more node-hours", "12 to 13 % of node-hours".
_SHARE: Final = re.compile(r"(\d+) to (\d+) % (?:more|of|fewer) node-hours")


def with_money(text: str, price: float) -> str:
    """The text, with each share of node-hours in money: a month, for a node that always runs.

    price: of one node-hour.
    """

    def add(match: re.Match[str]) -> str:
        least, most = (int(share) / 100 * MONTH_HOURS * price for share in match.groups())
        return f"{match[0]} ({least:,.2f} to {most:,.2f} a month for each node)"

    return _SHARE.sub(add, text)


def set_node_price(values: dict[str, object], price: float) -> None:
    """Write the price of a node-hour into values, for all sets that name none of their own."""
    placeholder = mapping(values.get("placeholder"))
    usual = mapping(placeholder.get("defaults"))
    prices = {**mapping(usual.get("prices")), "nodeHour": price}
    values["placeholder"] = {**placeholder, "defaults": {**usual, "prices": prices}}
