"""Print JSON as Go's encoding/json prints it: sorted keys, its numbers and escapes.

So `to_json` gives the same text for a value as Helm's `toJson`.
"""

import json.encoder
import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

# Integers beyond it lose digits in Helm, which holds every number of a values file as a float64.
_EXACT_INTEGERS: Final = 2**53
# encoding/json's HTML-safe escapes; json.dumps leaves these five as they are.
_GO_ESCAPES: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def _go_number(number: float) -> str:
    """Print a number as Go's encoding/json prints the float64 that Helm makes of it."""
    if isinstance(number, int) and -_EXACT_INTEGERS < number < _EXACT_INTEGERS:
        return str(number)
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number that JSON can represent")
    if value == 0:
        return "0"
    if not 1e-6 <= abs(value) < 1e21:
        mantissa, _, exponent = repr(value).partition("e")
        if not exponent:
            return mantissa
        sign = exponent[0]
        # Python writes 1e-07, Go 1e-7.
        return f"{mantissa}e{sign}{exponent[1:].lstrip('0')}"
    from decimal import Decimal  # noqa: PLC0415 - few renders need it, and its import is slow

    # Go writes the fewest digits that give the same float back. So does Python's repr, and Decimal
    # writes these digits without an exponent.
    digits = format(Decimal(repr(value)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _go_string(text: str) -> str:
    return json.encoder.encode_basestring(text).translate(_GO_ESCAPES)


def encode(value: object, newline: str, step: str, colon: str) -> Iterator[str]:
    """Yield the pieces of `value` as JSON.

    newline: what stands before each item; "" for JSON on one line. step: one level of indentation.
    colon: what stands between a key and its value. Raises ValueError for what JSON can't hold.
    """
    if value is None:
        yield "null"
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, str):
        yield _go_string(value)
    elif isinstance(value, int | float):
        yield _go_number(value)
    elif isinstance(value, Mapping):
        deeper = newline + step
        before_key = "{" + deeper
        # Go sorts by the keys' UTF-8 bytes, which is the order of code points, as Python's.
        for key in sorted(value):
            yield f"{before_key}{_go_string(key)}{colon}"
            yield from encode(value[key], deeper, step, colon)
            before_key = "," + deeper
        yield newline + "}" if value else "{}"
    elif isinstance(value, list | tuple):
        deeper = newline + step
        before_item = "[" + deeper
        for item in value:
            yield before_item
            yield from encode(item, deeper, step, colon)
            before_item = "," + deeper
        yield newline + "]" if value else "[]"
    else:
        raise ValueError(f"a {type(value).__name__} can't be printed as JSON")


_plain_json: Final = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
).encode
# In JSON of Python's: exponents, long or integral floats, and characters that Go escapes. Go may
# print these differently.
_GO_PRINTS_APART: Final = re.compile(
    "[0-9][eE][-+]?[0-9]|[0-9]{16}|\\.0(?![0-9])|[<>&\u2028\u2029]"
)


def to_json(value: object) -> str:
    """One line of JSON, which is YAML too: sorted keys, Go's numbers and escapes.

    Sprig's `toJson`.
    """
    try:
        text = _plain_json(value)
    except (TypeError, ValueError):
        # The C encoder refuses keys that are not strings, infinities, and maps of other types.
        return to_json_exactly(value)
    if _GO_PRINTS_APART.search(text) is not None:
        return to_json_exactly(value)
    return text


def to_json_exactly(value: object) -> str:
    """The same text as `to_json`, without the fast C encoder."""
    return "".join(encode(value, "", "", ":"))
