"""Draw values from the chart's schema, as a Hypothesis strategy: whatever the schema allows, both
renderers must take.

References between keys (a profile's strategy, the class that a join names) are bent afterwards to
keys that exist: that they do is not the schema's to say.
"""

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from generator.schema.check import fits, read_schema
from generator.values.sources import LoadedFile

Json = Any
# Strings that YAML, Go and Python spell apart when nobody quotes them.
AWKWARD = (
    "on",
    "no",
    "null",
    "~",
    "1e3",
    "0x1F",
    "017",
    "1_000",
    "12:30:00",
    "2026-01-01",
    "true",
    "-0",
    ".5",
    "<&>",
    "=",
    "{{ x }}",
    "a: b",
    "# x",
    "é🙂",
    "\u2028",
    "line\nline\n",
    " lead",
    "trail ",
    "'",
    '"',
    "\\",
    "|",
    "> ",
    "!tag",
    "*a",
)
# What a values file may hold: control characters are refused (generator.loader).
PRINTABLE = st.characters(codec="utf-8", exclude_categories=["Cc"], include_characters="\t\n")
NUMBERS = (
    *(0, 1, -1, 1.0, 0.1, 1e-7, 1e-6, 1e20, 1e21, 1.5e300),
    *(2**53, 2**53 + 1, 12345678901234567890, 1000000, 2500000.5),
)


def _whole(pattern: str) -> str:
    """The pattern for all of a string: Python's `$` also stands before a last newline."""
    return re.sub(r"\$$", r"\\Z", pattern)


def _free(depth: int) -> SearchStrategy[Json]:
    """Any JSON, where the schema asks for nothing."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from(NUMBERS),
        st.sampled_from(AWKWARD),
        st.text(PRINTABLE, max_size=8),
    )
    if depth <= 0:
        return leaves
    deeper = _free(depth - 1)
    keys = st.one_of(st.sampled_from(AWKWARD), st.text(PRINTABLE, max_size=5))
    return st.one_of(
        leaves, st.lists(deeper, max_size=3), st.dictionaries(keys, deeper, max_size=3)
    )


def _drawn(schema: Json, root: Mapping[str, Json], depth: int) -> SearchStrategy[Json]:
    if not isinstance(schema, Mapping):
        return _free(2)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        drawn = _drawn(root["definitions"][name], root, depth)
        # What its parts must be to each other.
        return (
            drawn.filter(lambda value: fits(value, name))
            if "allOf" in root["definitions"][name]
            else drawn
        )
    for choice in ("anyOf", "oneOf"):
        if choice in schema and "type" not in schema:
            return st.one_of(*(_drawn(one, root, depth) for one in schema[choice]))
    if "allOf" in schema and "type" not in schema:
        # The first says what it is, the others what it must hold.
        least = max((part.get("minProperties", 0) for part in schema["allOf"]), default=0)
        return _drawn(schema["allOf"][0], root, depth).filter(
            lambda value: not isinstance(value, dict) or len(value) >= least
        )
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type")
    if kinds is None:
        return _free(2)
    if isinstance(kinds, list):
        return st.one_of(*(_of_type(kind, schema, root, depth) for kind in kinds))
    return _of_type(kinds, schema, root, depth)


def _of_type(
    kind: str, schema: Mapping[str, Json], root: Mapping[str, Json], depth: int
) -> SearchStrategy[Json]:
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            low, high = schema.get("minimum", -(2**31)), schema.get("maximum", 2**31)
            whole = st.integers(low, high)
            # JSON Schema takes 3.0 for an integer, and so must both renderers.
            return st.one_of(whole, whole.map(float))
        case "number":
            fitting = [number for number in NUMBERS if number >= schema.get("minimum", 0)]
            return st.sampled_from(
                [number for number in fitting if number <= schema.get("maximum", 1e301)]
            )
        case "string":
            return _string(schema)
        case "array":
            longest = min(schema.get("maxItems", 3), schema.get("minItems", 0) + 2)
            items = _drawn(schema.get("items", {}), root, depth - 1)
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=longest)
        case _:
            return _object(schema, root, depth)


def _string(schema: Mapping[str, Json]) -> SearchStrategy[str]:
    pattern = schema.get("pattern")
    longest = schema.get("maxLength", 300)
    if pattern is None:
        return st.one_of(st.sampled_from(AWKWARD), st.text(PRINTABLE, max_size=min(longest, 20)))
    fitting = [
        text for text in AWKWARD if re.search(_whole(pattern), text) and len(text) <= longest
    ]
    drawn = st.from_regex(_whole(pattern), alphabet=PRINTABLE).filter(
        lambda text: len(text) <= longest
    )
    return st.one_of(st.sampled_from(fitting), drawn) if fitting else drawn


def _object(
    schema: Mapping[str, Json], root: Mapping[str, Json], depth: int
) -> SearchStrategy[Json]:
    properties: Mapping[str, Json] = schema.get("properties", {})
    if properties:
        required = set(schema.get("required", ()))
        entries = {name: _drawn(under, root, depth - 1) for name, under in properties.items()}
        return st.fixed_dictionaries(
            {name: one for name, one in entries.items() if name in required},
            optional={name: one for name, one in entries.items() if name not in required},
        ).filter(lambda value: len(value) >= schema.get("minProperties", 0))
    names = schema.get("propertyNames", {})
    keys = _drawn({"type": "string", **names} if "$ref" not in names else names, root, depth)
    under = schema.get("additionalProperties", {})
    if under is False:
        return st.just({})
    return st.dictionaries(
        keys, _drawn(under, root, depth - 1), min_size=schema.get("minProperties", 0), max_size=2
    )


# What an operator may write where something else is meant.
ODD: SearchStrategy[Json] = st.sampled_from([None, "", 7, True, [], {}, "x"])


def _odd_or(drawn: SearchStrategy[Json]) -> SearchStrategy[Json]:
    return st.one_of(ODD, drawn)


def _selectors() -> SearchStrategy[Json]:
    value = _odd_or(st.sampled_from(["gpu", "A_b.C", "ß", "a,b=c"]))
    return _odd_or(
        st.dictionaries(st.sampled_from(["pool", "size", "é", "a=b"]), value, max_size=3)
    )


def _lists_of_objects() -> SearchStrategy[Json]:
    """Tolerations and terms: the puller hands them on as they are."""
    entry = st.fixed_dictionaries({"key": st.sampled_from(["gpu", "a/b", "é"])})
    return _odd_or(st.lists(_odd_or(entry), max_size=2))


def _resources() -> SearchStrategy[Json]:
    amount = st.sampled_from([None, 0, "0", 1, "2", 0.5, True])
    names = st.sampled_from(["nvidia.com/gpu", "a/b", "cpu"])
    return _odd_or(st.dictionaries(names, amount, max_size=2))


def _containers() -> SearchStrategy[Json]:
    image = st.sampled_from(["side:1", "docker.io/side:1", "{image}", "", None, 3])
    container = _odd_or(st.fixed_dictionaries({}, optional={"image": image}))
    named = st.dictionaries(st.sampled_from("ba"), container, max_size=2)
    return _odd_or(st.one_of(st.lists(container, max_size=2), named))


def _profiles() -> SearchStrategy[Json]:
    """Profile lists, of which the schema says nothing: likely shapes, and shapes that nobody
    meant.
    """
    image = st.sampled_from(
        ["a", "a:latest", "docker.io/library/a", "B/c@sha256:0", "{value}", "é:1"]
    )
    overridden = {
        "image": _odd_or(image),
        "node_selector": _selectors(),
        "tolerations": _lists_of_objects(),
        "node_affinity_required": _lists_of_objects(),
        "extra_resource_limits": _resources(),
        "extra_resource_guarantees": _resources(),
        "init_containers": _containers(),
        "extra_containers": _containers(),
    }
    override = _odd_or(st.fixed_dictionaries({}, optional=overridden))
    is_true = st.sampled_from([True, False, None, "true", 1])
    holder = _odd_or(
        st.fixed_dictionaries({}, optional={"kubespawner_override": override, "default": is_true})
    )
    choices = _odd_or(
        st.one_of(
            st.lists(holder, max_size=3),
            st.dictionaries(st.sampled_from("bac"), holder, max_size=3),
        )
    )
    unlisted = st.fixed_dictionaries(
        {"enabled": is_true}, optional={"kubespawner_override": override}
    )
    option = _odd_or(
        st.fixed_dictionaries(
            {}, optional={"choices": choices, "unlisted_choice": _odd_or(unlisted)}
        )
    )
    options = _odd_or(
        st.one_of(
            st.lists(option, max_size=2), st.dictionaries(st.sampled_from("yx"), option, max_size=2)
        )
    )
    names = _odd_or(st.sampled_from(["Large", "é"]))
    profile = st.fixed_dictionaries(
        {},
        optional={
            "display_name": names,
            "slug": names,
            "kubespawner_override": override,
            "profile_options": options,
        },
    )
    return st.lists(profile, max_size=3)


def users() -> SearchStrategy[dict[str, Json]]:
    """`singleuser` and `prePuller` as helpers of the chart get them: all that they read, likely or
    not.
    """
    image = _odd_or(
        st.fixed_dictionaries(
            {},
            optional={
                "name": _odd_or(st.sampled_from(["quay.io/a/b", "localhost:5000/x", "é"])),
                "tag": st.sampled_from([None, "", "1", 2026, 20.5, "x_y"]),
            },
        )
    )
    profiles = _profiles()
    singleuser = st.fixed_dictionaries(
        {},
        optional={
            "image": image,
            "networkTools": _odd_or(st.fixed_dictionaries({"image": image})),
            "initContainers": _containers(),
            "extraContainers": _containers(),
            "nodeSelector": _selectors(),
            "extraTolerations": _lists_of_objects(),
            "extraNodeAffinity": _odd_or(st.fixed_dictionaries({"required": _lists_of_objects()})),
            "extraResource": _odd_or(
                st.fixed_dictionaries(
                    {}, optional={"limits": _resources(), "guarantees": _resources()}
                )
            ),
            "profileList": st.one_of(
                ODD, profiles, profiles.map(lambda found: dict(zip("cab", found, strict=False)))
            ),
        },
    )
    pre_puller = st.fixed_dictionaries(
        {},
        optional={
            "tolerations": _lists_of_objects(),
            "nodeSelector": _selectors(),
            "pullProfileListImages": st.sampled_from([True, False, None]),
            "extraImages": _odd_or(st.dictionaries(st.sampled_from("zy"), image, max_size=2)),
        },
    )
    return st.fixed_dictionaries(
        {"singleuser": _odd_or(singleuser), "prePuller": _odd_or(pre_puller)}
    )


def overrides(defaults: LoadedFile) -> SearchStrategy[dict[str, Json]]:
    """Values files that say something of a few top-level keys; the rest stays with the defaults."""
    root = read_schema()
    # `required` is for what the merge gives: an operator's file says as little as it likes.
    open_root = _without_required(root)
    keys = open_root["properties"].items()
    optional = {
        name: _drawn(under, open_root, 8)
        for name, under in keys
        if name not in ("global", "enabled")
    }
    some = st.lists(st.sampled_from(sorted(optional)), min_size=1, max_size=5, unique=True)
    drawn = some.flatmap(
        lambda names: st.fixed_dictionaries({name: optional[name] for name in names})
    )
    drawn = st.one_of(
        drawn,
        st.tuples(drawn, _profiles()).map(
            lambda pair: {
                **pair[0],
                "singleuser": {**pair[0].get("singleuser", {}), "profileList": pair[1]},
            }
        ),
    )
    return drawn.map(lambda values: _bend(values, defaults))


# Objects of which an operator's file may give a part, for the defaults have the rest.
_WHOLE = ("items", "additionalProperties")


def _without_required(schema: Json, *, is_new: bool = False) -> Json:
    """The schema for a part: `required` stays only inside what the defaults don't know (items, new
    entries).
    """
    if isinstance(schema, list):
        return [_without_required(one, is_new=is_new) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    parts: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "required" and not is_new:
            continue
        parts[key] = _without_required(
            value, is_new=is_new or key in _WHOLE or key == "definitions"
        )
    return parts


def _bend(values: dict[str, Json], defaults: LoadedFile) -> dict[str, Json]:
    """Point references at keys that exist."""
    known: Mapping[str, Json] = defaults.values
    strategies = ("imageFirst", "pack", "spread", "sticky")
    classes = sorted({*known["podClasses"], *values.get("podClasses", {})})
    for number, profile in enumerate((values.get("scheduler") or {}).get("profiles", {}).values()):
        profile["strategy"] = strategies[number % len(strategies)]
    for pod_class in values.get("podClasses", {}).values():
        for side in ("join", "avoid"):
            if side in pod_class:
                pod_class[side] = {
                    classes[number % len(classes)]: weight
                    for number, weight in enumerate(pod_class[side].values())
                }
    seen: set[str] = set()
    for number, one in enumerate(values.get("placeholders", [])):
        if one["name"] in seen:
            one["name"] = f"set-{number}"
        seen.add(one["name"])
    return values
