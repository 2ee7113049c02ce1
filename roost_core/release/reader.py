"""Read a settings document by type, key by key, and collect all faults instead of stopping at the
first.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Final, Protocol, TypeVar

from roost_core.objects.pod import MAX_WEIGHT

DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
DNS_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)

# A reader keeps no more: each is described, and a document can have hundreds of thousands.
MAX_FAULTS: Final = 50
_MAX_KEY_LETTERS: Final = 500
_MAX_EXPECTED_LETTERS: Final = 1000
# The longest line of a fault, in logs and on /readyz.
_MAX_LINE_LETTERS: Final = 500


@dataclass(frozen=True, slots=True)
class SettingsFault:
    """One fault: where, what was found, what is expected."""

    key: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.key}: found {self.found}, expected {self.expected}."


class SettingsError(Exception):
    """A settings document has faults; `faults` has all of them, or the first MAX_FAULTS and one
    that says so.
    """

    def __init__(self, faults: Sequence[SettingsFault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)

    def one_line(self) -> str:
        """All faults in one line of at most 500 characters, for logs: who wrote the document chose
        its length.
        """
        return _cut("; ".join(str(self).splitlines()), _MAX_LINE_LETTERS)


Document = Mapping[str, object]
_E = TypeVar("_E", bound=StrEnum)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def describe(found: object) -> str:
    """Describe a value in at most 60 characters."""
    if found is None:
        return "nothing"
    try:
        text = json.dumps(found, default=str)
    except ValueError:
        # Python writes no integer of more than 4300 digits, and YAML's hexadecimal ones have no
        # bound.
        return "a number of thousands of digits"
    return _cut(text, 60)


def load_document(name: str, read_bytes: Callable[[], bytes]) -> tuple[dict[str, object], str]:
    """The JSON object in a file, and its revision. Raises SettingsError.

    name: of the file, for faults. The revision, by which pods and logs name a document, begins its
    SHA-256: 12 digits.
    """
    try:
        text = read_bytes()
    except OSError as error:
        raise SettingsError(
            [SettingsFault(name, f"no readable file ({error.strerror})", "a JSON object")]
        ) from None
    return parse_document(text, name), sha256(text).hexdigest()[:12]


def parse_document(text: bytes, name: str = "the document") -> dict[str, object]:
    """Parse a JSON object. Raises SettingsError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            [SettingsFault(name, f"invalid JSON ({type(error).__name__})", "a JSON object")]
        ) from None
    if not isinstance(document, dict):
        raise SettingsError([SettingsFault(name, describe(document), "a JSON object")])
    return document


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


@dataclass(slots=True)
class Reader:
    """Reads values by type and collects faults; a faulty value is replaced by a default, so that
    reading continues.
    """

    faults: list[SettingsFault] = field(default_factory=list)
    # How often `fault` was called, also when it added nothing.
    count: int = 0
    _known: set[SettingsFault] = field(default_factory=set)

    def fault(self, key: str, found: object, expected: str) -> None:
        """Add a fault under `key`, unless it has been added before; after MAX_FAULTS only that
        there are more.
        """
        self.count += 1
        if len(self.faults) > MAX_FAULTS:
            return
        fault = SettingsFault(
            _cut(key, _MAX_KEY_LETTERS), describe(found), _cut(expected, _MAX_EXPECTED_LETTERS)
        )
        if fault in self._known:
            return
        if len(self.faults) == MAX_FAULTS:
            fault = SettingsFault("and more", f"more than {MAX_FAULTS} faults", "none")
        self._known.add(fault)
        self.faults.append(fault)

    def mapping(self, value: object, key: str) -> Document:
        """`value` as a mapping with string keys; {} when it is null."""
        if value is None:
            return {}
        if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
            return value
        self.fault(key, value, "a mapping")
        return {}

    def items(self, value: object, key: str) -> Sequence[object]:
        """`value` as a list; () when it is null."""
        if value is None:
            return ()
        if isinstance(value, list | tuple):
            return value
        self.fault(key, value, "a list")
        return ()

    def mappings(self, value: object, key: str) -> tuple[Document, ...]:
        """A list of mappings; empty when it is null."""
        return tuple(
            self.mapping(entry, f"{key}[{index}]")
            for index, entry in enumerate(self.items(value, key))
        )

    def named(
        self, entries: Sequence[object], key: str, parse: Callable[[object, str], _N], what: str
    ) -> tuple[_N, ...]:
        """Entries of a list whose names differ; one with a fault is left out.

        parse: reads an entry under its own key. what: the other entries, for people.
        """
        parsed: list[_N] = []
        names: set[str] = set()
        for index, entry in enumerate(entries):
            at = f"{key}[{index}]"
            faults_before = self.count
            item = parse(entry, at)
            if item.name in names:
                self.fault(f"{at}.name", item.name, f"a name that no other {what} has")
            names.add(item.name)
            if self.count == faults_before:
                parsed.append(item)
        return tuple(parsed)

    def text(self, value: object, key: str) -> str:
        """`value` as a string; "" when it is null."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        self.fault(key, value, "a text")
        return ""

    def name(self, value: object, key: str, pattern: re.Pattern[str], expected: str) -> str:
        """`value` as a string of that pattern; "" on a fault."""
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        self.fault(key, value, expected)
        return ""

    def flag(self, value: object, key: str) -> bool:
        """`value` as true or false; False on a fault."""
        if not isinstance(value, bool):
            self.fault(key, value, "true or false")
            return False
        return value

    def integer(self, value: object, key: str) -> int:
        """`value` as an integer; 0 on a fault. The values' schema alone says its range."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(key, value, "a whole number")
            return 0
        return value

    def weight(self, value: object, key: str) -> int:
        """`value` as the weight of a preferred term; 1 on a fault.

        The API server refuses a pod with any other weight, so this range is Kubernetes' own.
        """
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_WEIGHT:
            self.fault(key, value, f"a whole number from 1 to {MAX_WEIGHT}")
            return 1
        return value

    def number(self, value: object, key: str) -> float:
        """`value` as a finite number; 0.0 on a fault."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(key, value, "a number")
            return 0.0
        # NaN, and an integer that no float holds.
        if not abs(value) <= sys.float_info.max:
            self.fault(key, value, "a number")
            return 0.0
        return float(value)

    def price(self, value: object, key: str) -> float:
        """`value` as an amount of money; 0.0 on a fault.

        Forecasts weigh prices against each other: a negative one would turn that upside down.
        """
        price = self.number(value, key)
        if price < 0:
            self.fault(key, value, "an amount of money from 0 on")
            return 0.0
        return price

    def price_above_0(self, value: object, key: str) -> float:
        """`value` as an amount of money by which others are divided; 1.0 on a fault."""
        faults_before = self.count
        price = self.number(value, key)
        if price > 0:
            return price
        if self.count == faults_before:
            self.fault(key, value, "an amount of money above 0")
        return 1.0

    def choice(self, value: object, key: str, choices: type[_E]) -> _E:
        """The member of `choices` with this value; the first on a fault."""
        for choice in choices:
            if value == choice.value:
                return choice
        self.fault(key, value, " or ".join(choices))
        return next(iter(choices))

    def known(self, mapping: Document, key: str, names: Sequence[str]) -> None:
        """Add a fault for each key that is not one of `names`: they are typing errors."""
        for name in mapping:
            if name not in names:
                self.fault(
                    f"{key}.{name}",
                    mapping[name],
                    f"no such key; known are {', '.join(sorted(names))}",
                )

    def label_key(self, value: object, key: str) -> None:
        """Add a fault unless `value` is a valid label key."""
        prefix, slash, name = value.rpartition("/") if isinstance(value, str) else ("", "", "")
        if not LABEL_NAME.fullmatch(name) or (slash and not DNS_NAME.fullmatch(prefix)):
            self.fault(key, value, "a label's key")

    def labels(self, value: object, key: str) -> dict[str, str]:
        """`value` as labels; invalid ones are faults, and left out."""
        labels: dict[str, str] = {}
        for name, text in self.mapping(value, key).items():
            self.label_key(name, f"{key}.{name}")
            if isinstance(text, str) and (text == "" or LABEL_NAME.fullmatch(text)):
                labels[name] = text
            else:
                self.fault(
                    f"{key}.{name}",
                    text,
                    "a label's value: at most 63 letters, digits, dashes, dots, underscores",
                )
        return labels

    def expressions(
        self, value: object, key: str, operators: frozenset[str], *, fields: bool = False
    ) -> None:
        """Add the faults of a list of selector expressions."""
        for index, expression in enumerate(self.items(value, key)):
            at = f"{key}[{index}]"
            entry = self.mapping(expression, at)
            self.known(entry, at, ("key", "operator", "values"))
            operator = entry.get("operator")
            values = self.items(entry.get("values"), f"{at}.values")
            if fields:
                if entry.get("key") != "metadata.name":
                    self.fault(f"{at}.key", entry.get("key"), "metadata.name")
                operators = frozenset({"In", "NotIn"})
            else:
                self.label_key(entry.get("key"), f"{at}.key")
            # Not any value can be looked up in a set.
            if not isinstance(operator, str) or operator not in operators:
                self.fault(f"{at}.operator", operator, " or ".join(sorted(operators)))
            if not all(isinstance(item, str) for item in values):
                self.fault(f"{at}.values", list(values), "a list of texts")
            if operator in ("In", "NotIn") and (not values or (fields and len(values) != 1)):
                self.fault(
                    f"{at}.values",
                    list(values),
                    "exactly one value" if fields else "at least one value",
                )
            if operator in ("Exists", "DoesNotExist") and values:
                self.fault(f"{at}.values", list(values), "no values for this operator")
            if operator in ("Gt", "Lt") and not (
                len(values) == 1 and re.fullmatch(r"[+-]?[0-9]{1,18}", str(values[0]))
            ):
                self.fault(f"{at}.values", list(values), "one whole number, as a text")
