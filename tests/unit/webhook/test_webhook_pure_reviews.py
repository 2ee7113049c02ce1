"""Reviews: what goes in, what comes out, and that no fault of anybody's costs a hub its pods."""

import json
import logging
from pathlib import Path
from typing import Any

import orjson
import pytest

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.objects.pod_body import PodBody
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import HOME_TARGET_ANNOTATION
from tests.builders import (
    IMAGE,
    Desk,
    allowed,
    facts,
    node,
    patch_of,
    patched,
    pod_terms,
    review,
    settings,
    spread_term,
    user_pod,
)
from tests.recorded_data import LEFT_ALONE, PODS, REVIEWS, rows
from webhook.admission import ReviewResult
from webhook.bounds import MAX_BODY_BYTES
from webhook.facts.facts import Facts
from webhook.review import Reviewer
from webhook.watching.builders import read_builder

SECRET = "0123456789abcdef-the-token"


def with_secrets() -> JSONObject:
    body = user_pod()
    variables = [{"name": "JUPYTERHUB_API_TOKEN", "value": SECRET}]
    body["spec"]["containers"][0] |= {"env": variables, "args": [f"--ServerApp.token={SECRET}"]}
    body["metadata"]["annotations"] = {"note": SECRET}
    return body


def document(**changes: object) -> bytes:
    return json.dumps({**json.loads(review(user_pod())), **changes}).encode()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\xff\xfe", 400),
        (b"[]", 400),
        (b"[" * 5000 + b"]" * 5000, 400),
        (b"NaN", 400),
        (document(kind="Pod"), 400),
        (document(apiVersion="admission.k8s.io/v1beta1"), 400),
        (document(request=None), 400),
        (document(request=[]), 400),
        (document(request={"operation": "CREATE"}), 400),
        (document(request={"uid": 7}), 400),
        (document(request={"uid": ""}), 400),
        (document(request={"uid": "x" * 500}), 400),
        (b" " * (MAX_BODY_BYTES + 1), 413),
    ],
)
def test_what_is_no_review_is_refused_with_one_clear_line(body: bytes, status: int) -> None:
    desk = Desk()
    answer = desk.reviewer.review(body)
    assert answer.status == status
    assert answer.body.count(b"\n") == 1
    assert len(answer.body) < 200
    assert [decision.result for decision in desk.decisions] == [ReviewResult.MALFORMED]


@pytest.mark.parametrize("body", rows("webhook/odd-objects"))
def test_an_odd_object_is_admitted_as_it_is_with_a_warning(body: object) -> None:
    desk = Desk(known=facts(node("n1", IMAGE)))
    response = desk.answer(body)
    assert patch_of(response) == []
    assert response["warnings"][0].startswith("Roost: pod admitted unchanged: ")
    assert desk.decisions[0].result is ReviewResult.ODD


def test_a_fault_of_our_own_admits_the_pod_and_its_content_never_reaches_log_or_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(pod: PodBody, _changes: object) -> list[object]:
        raise RuntimeError(f"quoting {pod.body}")

    monkeypatch.setattr("webhook.admission.patch_for", broken)
    desk = Desk()
    with caplog.at_level(logging.DEBUG):
        response = desk.answer(with_secrets())
    assert patch_of(response) == []
    assert "internal error" in response["warnings"][0]
    assert desk.decisions[0].result is ReviewResult.ERROR
    assert "RuntimeError" in caplog.text
    assert "in broken" in caplog.text
    assert SECRET not in caplog.text + str(response)


def test_tokens_are_never_logged_nor_answered(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for known in (Facts(), facts(node("n1", IMAGE)), facts(node("n1"))):
            response = Desk(known=known).answer(with_secrets())
            assert SECRET not in str(response) + str(patch_of(response))
        whole = review(with_secrets())
        for length in range(0, len(whole), 97):
            answer = Desk().reviewer.review(whole[:length])
            assert answer.status == 400
            assert SECRET.encode() not in answer.body
    assert SECRET not in caplog.text


def test_counting_settings_or_facts_that_fail_cost_no_pod(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> Any:
        raise ValueError("not today")

    rules = settings()
    reviewer = Reviewer(lambda: rules, Facts, lambda: 0.0, broken)
    assert patch_of(allowed(reviewer.review(review(user_pod()))))
    assert "not counted" in caplog.text
    reviewer = Reviewer(lambda: rules, broken, lambda: 0.0, lambda *_: None)
    assert patch_of(allowed(reviewer.review(review(user_pod())))) == []


def test_deep_nesting_in_places_that_nobody_reads_does_no_harm() -> None:
    body = user_pod(tolerations=[json.loads("[" * 300 + "]" * 300)], nodeSelector={"pool": "gpu"})
    known = facts(*(node(f"n{index}", IMAGE) for index in range(20)))
    assert Desk(known=known).place(body)["spec"]["schedulerName"] == "hub.jhub.user"


def test_outcomes_name_class_and_duration() -> None:
    desk = Desk(known=facts(node("n1", IMAGE)))
    times = iter([10.0, 10.25])
    desk.reviewer = Reviewer(
        lambda: desk.rules, lambda: desk.facts, lambda: next(times), desk.count
    )
    placed = desk.place(user_pod())
    ((decision, _, seconds),) = desk.outcomes
    assert (decision.pod_class, decision.result, seconds) == ("user", ReviewResult.PATCHED, 0.25)
    again = Desk(known=desk.facts)
    again.answer(placed)
    assert again.decisions[0].result is ReviewResult.UNCHANGED


def desk_for_fixtures() -> Desk:
    rules = settings(
        replaceSchedulers=[f"{of}-user-scheduler" for of in ("hub", "jupyterhub", "prod", "binder")]
    )
    labels = {"hub.jupyter.org/node-purpose": "user", "mybinder.org/pool-type": "users"}
    taints = (Taint("hub.jupyter.org/dedicated", "user", "NoSchedule"),)
    nodes = [node(f"node-{letter}", IMAGE, labels=labels, taints=taints) for letter in "abc"]
    return Desk(rules, facts(*nodes, builders="node-a node-b node-c"))


@pytest.mark.parametrize("path", sorted(PODS.glob("*.json")), ids=lambda path: path.stem)
def test_real_pods_are_placed_once_and_keep_what_their_authors_set(path: Path) -> None:
    name, body, desk = path.name, json.loads(path.read_text()), desk_for_fixtures()
    placed = desk.place(body)
    if name.startswith(LEFT_ALONE):
        assert placed == body
        return
    assert desk.place(placed) == placed
    scheduler = {
        "b": "build" if "build" in name else "user",
        "z": "placeholder" if "placeholder" in name else "user",
    }[name[0]]
    assert placed["spec"]["schedulerName"] == f"hub.jhub.{scheduler}"
    if scheduler == "build":
        assert placed["metadata"]["annotations"][HOME_TARGET_ANNOTATION] in {
            "node-a",
            "node-b",
            "node-c",
        }
        assert "kubernetes.io/hostname" not in str(placed["spec"]["affinity"]["nodeAffinity"])
        assert pod_terms(placed, "podAntiAffinity") == [{**spread_term(), "weight": 1}]
        placed["spec"].pop("affinity")
        body["spec"].pop("affinity")
    assert_keeps(placed, body, "")


def assert_keeps(placed: object, body: object, path: str) -> None:
    """All of `body` is in `placed`; lists may only grow at their end.

    The scheduler's name is the one exception.
    """
    if isinstance(body, dict):
        assert isinstance(placed, dict), path
        for key, value in body.items():
            if path == ".spec" and key == "schedulerName":
                continue
            assert key in placed, f"{path}.{key}"
            assert_keeps(placed[key], value, f"{path}.{key}")
    elif isinstance(body, list):
        assert isinstance(placed, list), path
        assert len(placed) >= len(body), path
        for index, value in enumerate(body):
            assert_keeps(placed[index], value, f"{path}[{index}]")
    else:
        assert placed == body, path


@pytest.mark.parametrize("path", sorted(REVIEWS.glob("*.json")), ids=lambda path: path.stem)
def test_real_reviews_are_answered(path: Path) -> None:
    document = json.loads(path.read_text())
    body = document["request"]["object"]
    document["request"]["namespace"] = "jhub"
    desk = desk_for_fixtures()
    response = allowed(desk.reviewer.review(orjson.dumps(document)))
    assert response["uid"] == document["request"]["uid"]
    placed = patched(body, response)
    if "image-puller" in path.name:
        assert placed == body
    else:
        assert placed["spec"]["schedulerName"].startswith("hub.jhub.")
        assert desk.place(placed) == placed


def test_a_node_is_read_as_placement_needs_it() -> None:
    raw = {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"unschedulable": True, "taints": [{"key": "dedicated", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [
                {"type": "DiskPressure", "status": "False"},
                {"type": "Ready", "status": "True"},
            ]
        },
    }
    read = read_node(raw)
    assert (read.name, read.labels, read.unschedulable, read.ready) == (
        "n1",
        {"zone": "a"},
        True,
        True,
    )
    assert read.taints == (Taint("dedicated", "", "NoSchedule"),)
    assert not read_node({"metadata": {"name": "n2"}, "spec": {}, "status": {}}).ready
    assert not read_node(
        {**raw, "metadata": {"name": "n3", "deletionTimestamp": "now"}, "spec": {}}
    ).is_usable


READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.mark.parametrize(("changes", "node_name"), rows("webhook/builders"))
def test_pending_unready_and_leaving_builders_serve_no_node(
    changes: JSONObject, node_name: str | None
) -> None:
    assert (
        read_builder({"metadata": {}, "spec": {"nodeName": "n1"}, "status": READY, **changes})
        == node_name
    )
