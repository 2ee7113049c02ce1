"""Say shares of node-hours in money, once the price of a node-hour is known."""

from __future__ import annotations

from typing import Final

from generator.values.lookups import mapping

# Hours of a month, as clouds bill them.
MONTH_HOURS: Final = 730.0


def node_hours(least: int, most: int, how: str, price: float | None) -> str:
    """A share of node-hours in words, for example "1 to 10 % more node-hours".

    least, most: in percent. how: "more", "of" or "fewer". price: of a node-hour; None: it isn't
    known. With a price, the text also has the share in money, for a node that runs a whole month.
    """
    share = f"{least} to {most} % {how} node-hours"
    if price is None:
        return share
    least_money = least / 100 * MONTH_HOURS * price
    most_money = most / 100 * MONTH_HOURS * price
    return f"{share} ({least_money:,.2f} to {most_money:,.2f} a month for each node)"


def set_node_price(values: dict[str, object], price: float) -> None:
    """Write the price of a node-hour into `values`, for all sets without their own price."""
    placeholder = mapping(values.get("placeholder"))
    defaults = mapping(placeholder.get("defaults"))
    prices = {**mapping(defaults.get("prices")), "nodeHour": price}
    values["placeholder"] = {**placeholder, "defaults": {**defaults, "prices": prices}}
