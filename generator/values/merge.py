"""Put values together to the letter as Helm does: chart defaults, then -f files, then --set-json, --set, --set-string.

Maps merge deeply, lists replace, `null` deletes a key of the defaults; nulls in the defaults themselves vanish.
Source: Helm 4's `pkg/cli/values`, `pkg/strvals` and `pkg/chart/common/util/coalesce.go`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn

from generator.faults import Path, UsageError
from generator.values.sources import CONTROL, MAX_DEPTH, LoadedFile, Places, Source, ValueSource, normalise_float

# Helm's bounds on `--set a[INDEX]` and on `--set a.b.c…`.
MAX_INDEX: Final = 65536
MAX_NESTED_NAMES: Final = 30

Values = dict[str, object]


class Settings(NamedTuple):
    """Values from the command line, each as it was typed, in the order in which Helm applies them."""

    json_values: Sequence[str] = ()
    values: Sequence[str] = ()
    string_values: Sequence[str] = ()


NO_SETTINGS: Final = Settings()


class Merged(NamedTuple):
    """Values that are ready to be validated, and where each key was written."""

    values: Values
    places: Places
    # The defaults that went in, without nulls: they fit the schema.
    defaults: Mapping[str, object] = {}


def merge_values(defaults: LoadedFile, files: Sequence[LoadedFile], settings: Settings = NO_SETTINGS) -> Merged:
    """Merge everything into one map; the arguments stay as they are. Raises UsageError for a `--set` Helm refuses."""
    given: Values = {}
    sources: list[Source] = [defaults.source]
    for file in files:
        given = merge_maps(given, file.values)
        sources.append(file.source)
    given = _copy_map(given)
    for flag, texts in zip(_READERS, settings, strict=True):
        for text in texts:
            # By itself it tells which keys it touches.
            alone: Values = {}
            with suppress(UsageError):
                alone = _apply(flag, text, {})
            sources.append(ValueSource(f"{flag} {text}", alone, new_lists(alone, given)))
            given = _apply(flag, text, given)
    return Merged(coalesce(given, defaults.values), Places(sources), defaults.values)


def merge_maps(older: Mapping[str, object], newer: Mapping[str, object]) -> Values:
    """Lay `newer` over `older`: maps deeply, everything else replaced; a null stays, to delete a default later."""
    merged = dict(older)
    for key, value in newer.items():
        before = merged.get(key)
        merged[key] = merge_maps(before, value) if isinstance(value, dict) and isinstance(before, dict) else value
    return merged


def coalesce(given: Mapping[str, object], defaults: Mapping[str, object]) -> Values:
    """Fill `given` up with the chart's defaults; a null in `given` deletes the default's key."""
    merged = _copy_map(given)
    _coalesce_maps(merged, defaults)
    # At the top Helm takes a null away where the default is null, too.
    return {key: value for key, value in merged.items() if value is not None or key not in defaults}


def _coalesce_maps(given: Values, defaults: Mapping[str, object]) -> None:
    for key, default in defaults.items():
        # Helm removes the defaults' own nulls before it merges.
        if default is None:
            continue
        if key not in given:
            given[key] = _without_nulls(default)
        elif given[key] is None:
            del given[key]
        elif isinstance(value := given[key], dict) and isinstance(default, dict):
            _coalesce_maps(value, default)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return _copy(value)


def _copy(value: object) -> object:
    if isinstance(value, dict):
        return _copy_map(value)
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _copy_map(value: Mapping[str, object]) -> Values:
    return {key: _copy(item) for key, item in value.items()}


# --- --set ------------------------------------------------------------------------------------------------------------


def _apply(flag: str, text: str, values: Values) -> Values:
    if flag == "--set-json" and text.strip().startswith("{"):
        parser = _SetParser(text.strip(), flag)
        whole = parser.json_value()
        if parser.rest() or not isinstance(whole, dict):
            parser.fail("is not a single JSON object")
        return merge_maps(values, whole)
    _SetParser(text, flag).run(values)
    return values


def new_lists(values: object, before: object, path: Path = ()) -> set[Path]:
    """Paths of the lists in `values` that no file gave before: such a list replaces the defaults' whole."""
    paths: set[Path] = set()
    if isinstance(values, list):
        if not isinstance(before, list):
            paths.add(path)
    elif isinstance(values, dict):
        for key, value in values.items():
            below = before.get(key) if isinstance(before, dict) else None
            paths |= new_lists(value, below, (*path, key))
    return paths


def typed_value(text: str) -> object:
    """Read a `--set` value: true, false, null, an integer that fits int64 and doesn't start with 0, else text."""
    folded = text.lower()
    if folded in {"true", "false", "null"}:
        return {"true": True, "false": False, "null": None}[folded]
    if text == "0":
        return 0
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if digits.isascii() and digits.isdigit() and not text.startswith("0"):
        number = int(text) if len(digits) < 30 else 2**64
        if -(2**63) <= number < 2**63:
            return number
    return text


# What reads a value of each flag, in the order in which Helm applies them; None: it is JSON.
_READERS: Final[Mapping[str, Callable[[str], object] | None]] = {
    "--set-json": None,
    "--set": typed_value,
    "--set-string": str,
}


class _SetParser:
    """Helm's `strvals` language: a.b=c, a[0].b=c, a={x,y}, backslash escapes, several settings by comma."""

    def __init__(self, text: str, flag: str) -> None:
        self._text = text
        self._flag = flag
        self._read_text = _READERS[flag]
        self._at = 0
        control = CONTROL.search(text)
        if control is not None:
            self.fail(f"holds the control character U+{ord(control[0]):04X}")

    def fail(self, why: str) -> NoReturn:
        example = {"--set-json": "webhook.extraEnv=[]", "--set-string": "image.tag=1.0"}.get(
            self._flag, "scheduler.replicas=2"
        )
        raise UsageError(f"{self._flag} {self._text!r}: {why}. Write for example {self._flag} {example}")

    def run(self, values: Values) -> None:
        while self._at < len(self._text):
            self._key(values, 0)

    def rest(self) -> str:
        return self._text[self._at :].strip()

    def _until(self, stops: str) -> tuple[str, str]:
        """Read up to one of `stops`, which is consumed ("" at the end); a backslash takes the next character."""
        taken: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char in stops:
                return "".join(taken), char
            if char == "\\":
                if self._at == len(self._text):
                    break
                char = self._text[self._at]
                self._at += 1
            taken.append(char)
        return "".join(taken), ""

    def _key(self, values: Values, nested: int) -> None:
        name, stop = self._until("=[,.")
        if stop == "":
            if name:
                self.fail(f"key {name!r} has no value")
            return
        if stop == ",":
            self.fail(f"key {name!r} has no value")
        if stop == "=":
            _set(values, name, self._value())
        elif stop == "[":
            index = self._index()
            before = values.get(name, [])
            if not isinstance(before, list):
                self.fail(f"{name!r} is not a list")
            _set(values, name, self._item(before, index, nested))
        else:
            if nested + 1 > MAX_NESTED_NAMES:
                self.fail(f"more than {MAX_NESTED_NAMES} nested names")
            inner = values.get(name, {})
            if not isinstance(inner, dict):
                self.fail(f"{name!r} is not a map")
            at_end = self._at == len(self._text)
            self._key(inner, nested + 1)
            if not inner and not at_end:
                self.fail(f"map {name!r} has no value")
            if inner:
                _set(values, name, inner)

    def _index(self) -> int:
        text, stop = self._until("]")
        digits = text[1:] if text[:1] in {"+", "-"} else text
        if not stop or not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
            self.fail(f"{text!r} is not a list index")
        index = int(text)
        if not 0 <= index <= MAX_INDEX:
            self.fail(f"index {index} is not between 0 and {MAX_INDEX}")
        return index

    def _item(self, items: list[object], index: int, nested: int) -> list[object]:
        extra, stop = self._until("[.=")
        if extra or not stop:
            self.fail(f"unexpected {extra!r} after an index")
        held = items[index] if index < len(items) else None
        value: object
        if stop == "=":
            value = self._value()
        elif stop == "[":
            if held is not None and not isinstance(held, list):
                self.fail(f"item {index} is not a list")
            value = self._item(list(held or []), self._index(), nested)
        else:
            inner = held if isinstance(held, dict) else {}
            self._key(inner, nested)
            value = inner
        grown = [*items, *[None] * (index + 1 - len(items))]
        grown[index] = value
        return grown

    def _value(self) -> object:
        if self._read_text is None:
            return self.json_value()
        if self._text[self._at : self._at + 1] != "{":
            text, _ = self._until(",")
            return self._read_text(text)
        self._at += 1
        items: list[object] = []
        while True:
            text, stop = self._until(",}")
            if not stop:
                self.fail("a list must end with }")
            items.append(self._read_text(text))
            if stop == "}":
                break
        if self._text[self._at : self._at + 1] == ",":
            self._at += 1
        return items

    def json_value(self) -> object:
        if self._skip_to_comma():
            return None
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except (json.JSONDecodeError, RecursionError):
            self.fail("the value is not valid JSON")
        except ValueError as error:
            self.fail(str(error))
        self._skip_to_comma()
        return self._as_float64(value, 0)

    def _as_float64(self, value: object, depth: int) -> object:
        """Numbers as Go's encoding/json reads them."""
        if depth > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            return {key: self._as_float64(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._as_float64(item, depth + 1) for item in value]
        if isinstance(value, str) and CONTROL.search(value):
            self.fail("a text holds a control character")
        if isinstance(value, float) and not math.isfinite(value):
            self.fail("a number is too large")
        return normalise_float(value) if isinstance(value, float) else value

    def _skip_to_comma(self) -> bool:
        """Skip blanks; True (and past it) at a comma or the end."""
        while self._at < len(self._text):
            char = self._text[self._at]
            if not char.isspace():
                if char == ",":
                    self._at += 1
                    return True
                return False
            self._at += 1
        return True


def _set(values: Values, name: str, value: object) -> None:
    if name:
        values[name] = value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _without_double_keys(pairs: list[tuple[str, object]]) -> Values:
    # Files refuse that, too.
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {double!r} is given twice")
    return values


_DECODER: Final = json.JSONDecoder(
    parse_int=float, parse_constant=_refuse_constant, object_pairs_hook=_without_double_keys
)
