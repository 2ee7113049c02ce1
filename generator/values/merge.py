"""Put values together as Helm does: chart defaults, then -f files, then --set-json, then --set.

Maps are merged deeply. A list replaces the earlier list. `null` deletes a key of the defaults, and
nulls in the defaults themselves are left out. Each --set sets one key. Helm accepts more forms of
--set; a form that is accepted here means the same to Helm. Source: Helm 4's `pkg/cli/values`,
`pkg/strvals` and `pkg/chart/common/util/coalesce.go`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from generator.faults import UsageError
from generator.values.sources import (
    CONTROL,
    MAX_DEPTH,
    LoadedFile,
    Places,
    Source,
    ValueSource,
    normalise_float,
)

# Helm's bound on `--set a.b.c…`.
MAX_NESTED_NAMES: Final = 30
# Words that Helm reads as values, in any case of letters.
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}

Values = dict[str, object]


class SetOptions(NamedTuple):
    """KEY=JSON and KEY=VALUE from the command line, as they were typed."""

    json_values: Sequence[str] = ()
    values: Sequence[str] = ()


NO_SET_OPTIONS: Final = SetOptions()


class Merged(NamedTuple):
    """Values that are ready to be validated, and where each key was written."""

    values: Values
    places: Places
    # The defaults that went in, without nulls: they fit the schema.
    defaults: Mapping[str, object] = {}


def merge_values(
    defaults: LoadedFile, files: Sequence[LoadedFile], settings: SetOptions = NO_SET_OPTIONS
) -> Merged:
    """Merge defaults, files and settings into one map. The arguments stay as they are.

    Raises UsageError for a `--set` or `--set-json` that Helm refuses, or that sets more than one
    key.
    """
    given: Values = {}
    sources: list[Source] = [defaults.source]
    for file in files:
        given = merge_maps(given, file.values)
        sources.append(file.source)
    given = _copy_map(given)
    for flag, texts in zip(("--set-json", "--set"), settings, strict=True):
        for text in texts:
            setting = _Setting(flag, text)
            sources.append(ValueSource(f"{flag} {text}", setting.put({})))
            given = setting.put(given)
    return Merged(coalesce(given, defaults.values), Places(sources), defaults.values)


def merge_maps(older: Mapping[str, object], newer: Mapping[str, object]) -> Values:
    """`older` with the keys of `newer`: maps are merged deeply, everything else is replaced.

    A null stays, to delete a default later.
    """
    merged = dict(older)
    for key, value in newer.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            merged[key] = merge_maps(before, value)
        else:
            merged[key] = value
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
            continue
        value = given[key]
        if value is None:
            del given[key]
        elif isinstance(value, dict) and isinstance(default, dict):
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


# --- --set
# --------------------------------------------------------------------------------------------------

_NAME: Final = r"(?:\\.|[^\\.,=[])+"
_SETTING: Final = re.compile(rf"({_NAME}(?:\.{_NAME})*)=(.*)", re.DOTALL)
# Helm ends a value at a comma, and reads a value that begins with a brace as a list.
_PLAIN: Final = re.compile(r"(?!\{)(?:\\.|[^\\,])*", re.DOTALL)


class _Setting:
    """One KEY=VALUE from the command line. Raises UsageError."""

    def __init__(self, flag: str, text: str) -> None:
        self._flag = flag
        self._text = text
        control = CONTROL.search(text)
        if control is not None:
            self._fail(f"found the control character U+{ord(control[0]):04X}, expected text")
        match = _SETTING.fullmatch(text)
        if match is None or (flag == "--set" and not _PLAIN.fullmatch(match[2])):
            self._fail(
                "found no single key and its value, expected for example --set"
                " scheduler.replicas=2. A list: --set-json 'imagePullSecrets=[\"one\"]'; a comma or"
                " a dot that belongs to a text: \\, and \\."
            )
        self._names = [_unescaped(name) for name in re.findall(_NAME, match[1])]
        if len(self._names) > MAX_NESTED_NAMES:
            self._fail(
                f"found {len(self._names)} nested names, expected at most {MAX_NESTED_NAMES}"
            )
        self._value = _typed(_unescaped(match[2])) if flag == "--set" else self._json(match[2])

    def put(self, values: Mapping[str, object], depth: int = 0) -> Values:
        """A copy of the values with this one."""
        name = self._names[depth]
        if depth == len(self._names) - 1:
            return {**values, name: _copy(self._value)}
        inner = values.get(name, {})
        if not isinstance(inner, dict):
            self._fail(f"{name!r} is not a map")
        return {**values, name: self.put(inner, depth + 1)}

    def _fail(self, why: str) -> NoReturn:
        raise UsageError(f"{self._flag} {self._text!r}: {why}")

    def _json(self, text: str) -> object:
        try:
            return self._as_float64(_DECODER.decode(text), 0)
        except (json.JSONDecodeError, RecursionError):
            self._fail("the value is not valid JSON")
        except ValueError as error:
            self._fail(str(error))

    def _as_float64(self, value: object, depth: int) -> object:
        """Numbers as Go's encoding/json reads them."""
        if depth > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            return {key: self._as_float64(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._as_float64(item, depth + 1) for item in value]
        if isinstance(value, str) and CONTROL.search(value):
            self._fail("a text holds a control character")
        if isinstance(value, float) and not math.isfinite(value):
            self._fail("a number is too large")
        return normalise_float(value) if isinstance(value, float) else value


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _typed(text: str) -> object:
    """Read a `--set` value: true, false, null, an integer that fits int64 and doesn't start with 0,
    else text.
    """
    folded = text.lower()
    if folded in _WORDS:
        return _WORDS[folded]
    if text == "0":
        return 0
    digits = text[1:] if text[:1] in {"+", "-"} else text
    is_whole = digits.isascii() and digits.isdigit() and not text.startswith("0")
    # An int64 has 19 digits. Python's `int` refuses texts of thousands of digits.
    if is_whole and len(digits) < 30 and -(2**63) <= int(text) < 2**63:
        return int(text)
    return text


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
