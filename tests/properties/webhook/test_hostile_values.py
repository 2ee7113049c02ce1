"""Whatever values the schema accepts, a review costs no more than its bounds say, and its answer is
short.
"""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.schema.check import find_faults
from generator.values.files import parse_values
from roost_core.objects.fields import JSONObject
from tests.builders import (
    IMAGE,
    Desk,
    build_pod,
    builder_nodes,
    default_values,
    facts,
    merged,
    node,
    user_pod,
)
from tests.builders import review as review_of
from tests.builders import settings as settings_of
from tests.unit.webhook.test_webhook_bounds import calls_of
from webhook import bounds

# What a ConfigMap takes, and so the release's document.
MOST_BYTES = 1024 * 1024
NODES = facts(
    *builder_nodes(300), node("holder", IMAGE, labels={"hub.jupyter.org/node-purpose": "user"})
)


def requirement(key: str, values: int) -> JSONObject:
    if not values:
        return {"key": key, "operator": "Exists"}
    return {
        "key": key,
        "operator": "In",
        "values": [f"{'v' * 58}{number:05}" for number in range(values)],
    }


def selector(requirements: int, values: int) -> JSONObject:
    return {
        "matchExpressions": [requirement(f"s{number}", values) for number in range(requirements)]
    }


def values_of(  # noqa: PLR0917
    terms: int, expressions: int, values: int, classes: int, labels: int, shared: bool
) -> JSONObject:
    """Values with so many of everything that a review could go through."""
    term = [requirement(f"k{number}", values) for number in range(expressions)]
    preferred = [
        {
            "weight": 1,
            "preference": {
                "matchExpressions": [{**each, "key": f"t{number}-{each['key']}"} for each in term]
            },
        }
        for number in range(terms)
    ]
    others = {
        f"c{number}": {
            "match": {
                "labels": {"class": str(number), **{f"l{index}": "x" for index in range(labels)}},
                "namespaceSelector": None if shared else selector(expressions, values),
            },
            "profile": "user",
        }
        for number in range(classes)
    }
    user = {
        "preferredNodeTerms": preferred,
        "join": dict.fromkeys(others, 1),
        "avoid": dict.fromkeys(others, 1),
    }
    pools = {"namespaceSelector": selector(expressions, values) if shared else None}
    return {
        "podClasses": {**others, "user": user, "build": {"avoid": dict.fromkeys(others, 1)}},
        "sharedPools": pools,
    }


# At and below the schema's bounds: 100 terms, expressions and labels, 1,000 values, 50 classes.
VALUES = st.builds(
    values_of,
    terms=st.sampled_from([0, 1, 14, 100]),
    expressions=st.sampled_from([1, 10, 100]),
    values=st.sampled_from([0, 1, 100, 1000]),
    classes=st.sampled_from([0, 1, 45]),
    labels=st.sampled_from([0, 90]),
    shared=st.booleans(),
)


@settings(max_examples=30)
@given(VALUES, st.sampled_from([user_pod, build_pod]))
@example(values_of(0, 12, 1000, 45, 0, shared=True), user_pod)
@example(values_of(14, 1, 1000, 0, 0, shared=False), user_pod)
@example(values_of(100, 100, 0, 0, 0, shared=False), user_pod)
def test_whatever_the_values_a_review_is_cheap_and_its_answer_short(
    values: JSONObject, make: Any
) -> None:
    if len(json.dumps(values)) > MOST_BYTES:
        return
    assert find_faults(parse_values(json.dumps(values).encode(), "values.yaml")) == []
    classes = merged(default_values()["podClasses"], values["podClasses"])
    desk = Desk(settings_of(podClasses=classes, sharedPools=values["sharedPools"]), NODES)
    body = review_of(make())
    desk.reviewer.review(body)
    calls = calls_of(lambda: desk.answer(make()))
    assert calls < bounds.MAX_STEPS
    assert len(desk.reviewer.review(body).body) <= bounds.MAX_ANSWER_BYTES
