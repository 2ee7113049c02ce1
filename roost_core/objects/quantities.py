"""Read amounts of CPU and memory: Kubernetes quantities, and JupyterHub's, which have other units.

`1G` is 10^9 bytes for Kubernetes, and 2^30 bytes for JupyterHub. So a placeholder with the same
text as a user would be too small. Source: apimachinery's resource.Quantity; JupyterHub's
ByteSpecification.
"""

import re
from fractions import Fraction
from typing import Final

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?",
    re.ASCII,
)
_SUFFIXES: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    **{suffix: Fraction(1, 1000**power) for power, suffix in enumerate("mun", start=1)},
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}
_HUB_BYTES: Final = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<suffix>[KMGT])?", re.ASCII
)
# Enough for every float. Numbers with larger exponents would only use memory.
_MAX_EXPONENT: Final = 324


def _as_text(amount: object) -> str:
    """Return a text as it is, and a number as JSON writes it; "" for any other type.

    No pattern matches "", so the caller reports the same error for all of these.
    """
    if isinstance(amount, str):
        return amount
    if isinstance(amount, int | float) and not isinstance(amount, bool):
        return repr(amount)
    return ""


def parse_quantity(quantity: object) -> Fraction:
    """Return the exact value of a Kubernetes quantity (string or number), in cores or bytes.

    Raises ValueError.
    """
    match = _QUANTITY.fullmatch(_as_text(quantity))
    if match is None:
        raise ValueError("not a Kubernetes quantity")
    number = Fraction(match["number"].removesuffix("."))
    suffix = match["suffix"] or ""
    if suffix in _SUFFIXES:
        return number * _SUFFIXES[suffix]
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise ValueError("not a Kubernetes quantity: its exponent is too large")
    return number * Fraction(10) ** exponent


def parse_hub_bytes(amount: object) -> int:
    """Return the bytes of an amount as JupyterHub reads it: K, M, G, T are powers of 1024.

    Raises ValueError for anything else; also for `Gi`.
    """
    match = _HUB_BYTES.fullmatch(_as_text(amount))
    if match is None:
        raise ValueError(
            "not an amount of memory: JupyterHub knows K, M, G and T, all powers of 1024"
        )
    power = " KMGT".index(match["suffix"]) if match["suffix"] else 0
    return int(Fraction(match["number"].removesuffix(".")) * 1024**power)
