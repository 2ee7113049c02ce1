"""Say what the schema's checker finds wrong in values in an operator's words: key, found, accepted,
fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Final

from jsonschema_rs import ValidationError, ValidationErrorKind

from generator.faults import MISSING, Fault, KeyPath, describe
from generator.values.merge import Merged

Schema = dict[str, object]

_TYPE_NAMES: Final = {
    "object": "a map",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
    "integer": "an integer",
    "number": "a number",
}
_SET_IT: Final = "Set it: entries of a list have no defaults."
_SET_IT_TOO: Final = (
    "Set it too: --set-json replaces the list, and what the default's entries hold is gone."
)
_SET_IT_NOT_NULL: Final = "Set it; null removes the default."
_PRICES_SAY_IT: Final = (
    "Remove it. placeholder.defaults.prices says how many seats are worth their nodes."
)
_NO_BOUND: Final = "Remove it. A node takes builds while their requests fit."
_COMMON_LABELS: Final = "Remove it. commonLabels are on these pods, too."
# Keys that there were in earlier values -> what to do. `*`: any name or index.
_GONE: Final[Mapping[tuple[str, ...], str]] = {
    ("*", "pdb", "maxUnavailable"): "It is 1 now: remove it.",
    ("events", "calendarUrl"): (
        "Remove it. `roost book --calendar URL` books what a calendar has: docs/events.md."
    ),
    ("events", "settleMinutes"): "It is 15 now: remove it.",
    ("monitoring", "prometheusRule", "severities"): (
        "Remove it. Route by the alert's name in Alertmanager."
    ),
    ("placeholder", "defaults", "labels"): _COMMON_LABELS,
    ("placeholders", "*", "labels"): _COMMON_LABELS,
    ("placeholders", "*", "learn", "costPercent"): _PRICES_SAY_IT,
    ("placeholders", "*", "learn", "quantile"): _PRICES_SAY_IT,
    ("podClasses", "*", "attract"): (
        "Placeholders alone prefer the node that is marked for their set: remove it."
    ),
    ("podClasses", "*", "home", "matchBy"): "Nodes go by metadata.name now: remove it.",
    ("podClasses", "*", "home", "maxLoad"): _NO_BOUND,
    ("podClasses", "*", "home", "minLoad"): _NO_BOUND,
    ("prePuller", "labels"): _COMMON_LABELS,
    ("recorder", "database", "persistence", "accessModes"): "It is ReadWriteOnce now: remove it.",
    # A minor of Kubernetes.
    ("scheduler", "featureGates", "1.*"): (
        "Gates stand without a minor now: scheduler.featureGates: {Gate: false}."
    ),
    (
        "scheduler",
        "image",
        "tags",
    ): "Remove it. Another patch than Roost's own: scheduler.image.tag.",
    ("scheduler", "leaderElection", "leaseDuration"): "It is 15s now: remove it.",
    ("scheduler", "leaderElection", "renewDeadline"): "It is 10s now: remove it.",
    ("scheduler", "leaderElection", "retryPeriod"): "It is 2s now: remove it.",
    ("scheduler", "percentageOfNodesToScore"): "It is 100 now: remove it.",
    ("webhook", "clientCA", "configMapName"): (
        "Remove it. A CA is read from a Secret: put ca.crt into one and name it in"
        " webhook.clientCA.secretName."
    ),
    ("webhook", "timeoutSeconds"): "It is 2 now: remove it.",
}
_GONE_KEY: Final = "a key that is gone"
# Naming more keys than this helps nobody.
_MOST_NAMED: Final = 14


def explain(
    merged: Merged, schema: Schema, errors: Iterable[ValidationError]
) -> dict[KeyPath, Fault]:
    """Every fault of the merged values, by the path that it is about."""
    explainer = _Explainer(schema, merged)
    faults: dict[KeyPath, Fault] = {}
    for error in errors:
        for path, fault in explainer.faults(error):
            faults.setdefault(path, fault)
    return faults


def _follow(root: object, path: Iterable[str | int]) -> Any:  # noqa: ANN401 - whatever stands there
    node = root
    for step in path:
        node = node[step]  # type: ignore[index]
    return node


def _key_of(values: dict[str, Any], step: str | int) -> str | None:
    """The key that jsonschema-rs means: it takes "7", "007" and "+7" for the index 7."""
    if str(step) in values:
        return str(step)
    if isinstance(step, int):
        for key in values:
            if re.fullmatch(rf"\+?0*{step}", key):
                return key
    return None


def _place_of(values: object, steps: Iterable[str | int]) -> KeyPath:
    """Where an instance stands: jsonschema-rs leaves the key "" out, so `a.b` may be a[""].b."""
    path: KeyPath = ()
    node = values
    for step in steps:
        while isinstance(node, dict) and _key_of(node, step) is None and "" in node:
            path = (*path, "")
            node = node[""]
        key = step
        if isinstance(node, dict):
            key = _key_of(node, step) or step
        path = (*path, key)
        node = _follow(node, [key])
    return path


class _Explainer:
    def __init__(self, schema: Schema, merged: Merged) -> None:
        self._schema = schema
        self._values = merged.values
        self._places = merged.places

    def faults(self, error: ValidationError) -> Iterator[tuple[KeyPath, Fault]]:
        """Turn one of its errors into faults, each with the path that it is about."""
        path = _place_of(self._values, error.instance_path)
        *above, keyword = error.schema_path
        schema = _follow(self._schema, above)
        instance = _follow(self._values, path)
        argument = schema.get(keyword)
        gone = _fix_of_gone(path)
        if gone:
            yield path, self._places.fault(path, _GONE_KEY, "another key", gone)
        elif keyword == "additionalProperties":
            known = list(schema.get("properties", {}))
            for key in instance:
                if key not in known:
                    at = (*path, key)
                    gone = _fix_of_gone(at)
                    found = _GONE_KEY if gone else "an unknown key"
                    fix = gone or _nearest(key, known)
                    yield at, self._places.fault(at, found, _known_keys(known), fix)
        elif keyword == "required":
            for key in argument:
                if key not in instance:
                    at = (*path, key)
                    expected = self.expected(schema.get("properties", {}).get(key, {}))
                    yield at, self._places.fault(at, MISSING, expected, self._fix_of_missing(at))
        elif isinstance(error.kind, ValidationErrorKind.PropertyNames):
            at = (*path, str(error.kind.error.instance))
            most = schema[keyword] if keyword == "maxLength" else None
            yield at, self._fault_of_name(at, schema, most)
        elif keyword in {"minProperties", "maxProperties", "minItems", "maxItems"}:
            count = f"{len(instance)} entries"
            bound = "at least" if str(keyword).startswith("min") else "at most"
            yield path, self._places.fault(path, count, f"{bound} {argument}", self.fix(schema))
        elif keyword == "uniqueItems":
            fix = "Remove one of them."
            yield path, self._places.fault(path, "an entry twice", "each entry once", fix)
        else:
            found = describe(instance)
            fix = self._fix_of(instance, schema)
            yield path, self._places.fault(path, found, self.expected(schema), fix)

    def _fault_of_name(self, path: KeyPath, schema: Schema, most: int | None) -> Fault:
        """A key that the schema of names refuses. most: letters, where it has too many."""
        gone = _fix_of_gone(path)
        if gone:
            return self._places.fault(path, _GONE_KEY, "another key", gone)
        found = f"the key {describe(path[-1])}"
        expected = self.expected(schema) if most is None else f"at most {most} letters"
        return self._places.fault(path, found, expected, self.fix(schema))

    def _fix_of_missing(self, path: KeyPath) -> str:
        if not any(isinstance(step, int) for step in path):
            return _SET_IT_NOT_NULL
        return _SET_IT_TOO if self._places.of(path)[0].startswith("--set") else _SET_IT

    def _fix_of(self, instance: object, schema: Schema) -> str:
        fix = self.fix(schema)
        if fix or not isinstance(instance, str):
            return fix
        accepted = self._types(schema)
        if accepted & {"integer", "number"}:
            return "Write a number without quotes."
        if accepted == {"boolean"}:
            return "Write true or false without quotes."
        enum = schema.get("enum")
        return _nearest(instance, enum) if isinstance(enum, list) else ""

    def fix(self, schema: Schema) -> str:
        """How to mend a fault: the schema's `$comment`, of the nearest definition that has one."""
        comment = self._resolve(schema).get("$comment", "")
        return comment if isinstance(comment, str) else ""

    def expected(self, schema: object) -> str:
        """Say what a schema accepts: `an integer from 0 to 100`."""
        resolved = self._resolve(schema)
        title = resolved.get("title")
        if isinstance(title, str):
            return title
        enum = resolved.get("enum")
        if isinstance(enum, list):
            if len(enum) == 1:
                return str(enum[0])
            return "one of " + ", ".join(value or '""' for value in enum)
        for keyword in ("anyOf", "allOf"):
            parts = resolved.get(keyword)
            if isinstance(parts, list):
                named = [self.expected(part) for part in parts]
                joint = " or " if keyword == "anyOf" else " that is "
                return joint.join(dict.fromkeys(name for name in named if name != "another value"))
        names = [_TYPE_NAMES[name] for name in sorted(self._types(resolved)) if name in _TYPE_NAMES]
        accepted = " or ".join(names) or "another value"
        least = resolved.get("minimum")
        most = resolved.get("maximum")
        if least is not None and most is not None:
            return f"{accepted} from {least} to {most}"
        if least is not None:
            return f"{accepted} of at least {least}"
        return accepted

    def _types(self, schema: object) -> set[str]:
        given = self._resolve(schema).get("type")
        if isinstance(given, str):
            return {given}
        return {str(name) for name in given} if isinstance(given, list) else set()

    def _resolve(self, schema: object) -> Schema:
        """Follow `$ref`; a title or comment beside nothing else stays with its definition."""
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            definitions = self._schema.get("definitions")
            name = schema["$ref"].removeprefix("#/definitions/")
            schema = definitions.get(name) if isinstance(definitions, dict) else {}
        return schema if isinstance(schema, dict) else {}


def _known_keys(known: list[str]) -> str:
    if not known:
        return "no key here"
    if len(known) > _MOST_NAMED:
        return "a key of chart/values.yaml"
    return f"one of {', '.join(sorted(known))}"


def _fix_of_gone(path: KeyPath) -> str:
    """What to do about a key that there was; "" for any other."""
    for pattern, fix in _GONE.items():
        if len(pattern) != len(path):
            continue
        if all(fnmatchcase(str(step), part) for step, part in zip(path, pattern, strict=True)):
            return fix
    return ""


def _nearest(wrong: str, accepted: list[str]) -> str:
    """A hint when it looks like a typing error."""
    folded = {name.lower(): name for name in accepted}
    near = get_close_matches(wrong.lower(), folded, n=1)
    return f"Did you mean {folded[near[0]]}?" if near else ""
