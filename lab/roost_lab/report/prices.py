"""What nodes cost for an hour, as the reader of a report says: by a label, such as that of the machine's type."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class PriceError(ValueError):
    """A price that can't be read; the message says what was found and what is accepted."""


class Price(NamedTuple):
    """The price of a node with a label, for an hour, in any one currency."""

    label: str
    value: str
    per_hour: float

    def __str__(self) -> str:
        return f"{self.label}={self.value}"


def parse_price(text: str) -> Price:
    """A price written LABEL=VALUE:PRICE. Raises PriceError."""
    selector, _, number = text.rpartition(":")
    label, _, value = selector.partition("=")
    try:
        per_hour = float(number)
    except ValueError:
        per_hour = -1.0
    # Labels have no spaces, and Python's numbers are wider than what people write: 1_000.
    if "_" in number or not text.isascii() or any(character.isspace() for character in text):
        per_hour = -1.0
    if not (label and value and isfinite(per_hour) and per_hour >= 0):
        raise PriceError(
            f"{text}: expected LABEL=VALUE:PRICE, the price of a node for an hour, such as "
            "node.kubernetes.io/instance-type=e2-highmem-8:0.21"
        )
    return Price(label, value, per_hour)


def price_of(labels: str | None, prices: Sequence[Price]) -> Price | None:
    """The first price that fits a node's labels, a JSON object as text; None when none does."""
    known: Mapping[str, str] = json.loads(labels or "{}")
    return next((price for price in prices if known.get(price.label) == price.value), None)
