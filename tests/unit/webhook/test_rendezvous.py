"""The ring's order, and what kubelets say of pulls."""

from typing import Any

import pytest

from roost_core.placement.kubelet_pulls import (
    PulledMessage,
    image_in_message,
    read_pull_event,
    read_pulled_message,
)
from tests.binderhub_ring import rank_nodes
from tests.recorded_data import object_of, rows
from webhook.rendezvous import best_nodes, encode_name

SIX = [f"node-{index}" for index in range(6)]


@pytest.mark.parametrize(("key", "order"), rows("roost_core/ring-orders"))
def test_the_order_is_binderhubs(key: str, order: str) -> None:
    expected = [f"node-{index}" for index in order.split()]
    for count in range(len(SIX) + 1):
        assert best_nodes(key, map(encode_name, SIX), count) == expected[:count]


def test_the_best_of_many_nodes_are_the_first_of_binderhubs_order() -> None:
    names = [f"node-{index}" for index in range(300)]
    for key in map(str, range(20)):
        assert best_nodes(key, map(encode_name, names), 3) == rank_nodes(key, names)[:3]


def test_a_key_and_a_node_that_hash_alike_are_told_apart_by_the_nodes_name() -> None:
    # "a" + "b-c" and "a-b" + "c" are the same bytes: each key still has one order, the same in
    # every process.
    assert best_nodes("a", [b"b-c", b"z"], 2) == best_nodes("a", [b"z", b"b-c"], 2)


@pytest.mark.parametrize(("message", "expected"), rows("roost_core/pulled-messages"))
def test_messages_of_pulled_images(message: str, expected: list[Any] | None) -> None:
    assert read_pulled_message(message) == (PulledMessage(*expected) if expected else None)


def test_a_size_of_thousands_of_digits_is_none() -> None:
    said = read_pulled_message(
        f'Successfully pulled image "a:1" in 2s. Image size: {"9" * 5000} bytes.'
    )
    assert said == PulledMessage("a:1", False, 2_000_000, 2_000_000)


def test_the_image_of_a_failure_is_named() -> None:
    assert image_in_message('Back-off pulling image "a:1": ErrImagePull: not found') == "a:1"
    assert image_in_message('Failed to pull image "a@sha256:12": denied for "b"') == "a@sha256:12"
    assert image_in_message("Error: ImagePullBackOff") == ""


def test_an_event_that_names_no_image_is_none() -> None:
    event = object_of("already-present")
    read = read_pull_event(event)
    assert read is not None
    assert (read.pod, read.pod_uid, read.node, read.image, read.at) == ("p", "u", "n", "a:1", 60.0)
    assert read_pull_event({**event, "message": "Started container"}) is None
