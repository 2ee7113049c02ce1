from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from recorder.queries import PodStory
from recorder.reading import read_event
from recorder.records import Phase
from recorder.top import Picture, show
from recorder.why import tell

Row = dict[str, Any]
SECOND = 1_000_000
RESET = "\x1b[2J"


def story(phases: dict[str, int], bind: Row | None = None, failures: tuple[Row, ...] = ()) -> PodStory:
    pod: Row = {
        "uid": "u",
        "namespace": "hub",
        "name": "p",
        "pod_class": "user",
        "image": "",
        "repo": "",
        "created_us": 0,
        "deleted_us": None,
        "end_reason": None,
    }
    rows = [{"phase": phase, "detail": "", "at_us": at_us} for phase, at_us in phases.items()]
    decisions = [*failures, *([{**BIND, **bind}] if bind is not None else [])]
    return PodStory(pod, rows, decisions, [], [], None, [], [])


BIND: Row = {
    "kind": "bind",
    "node_name": "n",
    "scheduler": "",
    "at_us": 3 * SECOND,
    "nodes_feasible": 1,
    "nodes_total": 2,
    "model": "agrees",
    "model_note": "",
}


@pytest.mark.parametrize(("model", "is_sure"), [("agrees", True), ("differs", False), ("unknown", False)])
def test_that_no_other_node_was_possible_is_said_only_where_the_model_agrees(model: str, is_sure: bool) -> None:
    text = tell(story({}, {"model": model, "model_note": "the model refuses n"}))
    assert ("No other node was possible" in text) == is_sure
    assert ("say otherwise: the model refuses n" in text) == (model == "differs")


def test_a_bound_pod_without_the_moment_of_its_scheduling_waited_until_it_was_bound() -> None:
    assert "  3 s for a node\n" in tell(story({Phase.CREATED: 0}, {}))


def test_a_gated_pod_waits_for_its_gate_and_not_for_a_node() -> None:
    gated = tell(story({Phase.GATED: 0}))
    assert "  a scheduling gate of its own" in gated
    assert "  a node" not in gated
    assert "  a node" in tell(story({}))


def test_texts_of_the_cluster_do_not_steer_the_terminal_or_begin_lines() -> None:
    failure = {
        "kind": "fail",
        "at_us": 0,
        "tries": 1,
        "nodes_total": 1,
        "reasons": '{"\\u001b[31mred": 1}',
        "message": "",
    }
    other = {**failure, "reasons": "{}", "message": f"{RESET}first\nsecond"}
    text = tell(story({}, failures=(failure, other)))
    assert "\x1b" not in text
    assert "[2Jfirst second" in text
    assert "[31mred" in text


def test_the_live_picture_shows_markup_and_escapes_as_what_they_are() -> None:
    event = read_event(
        {
            "metadata": {"uid": "e"},
            "reason": "[red]Odd[/]",
            "note": f"{RESET}note [bold]",
            "regarding": {"kind": "Pod", "namespace": "hub", "name": "p[/]", "uid": "u"},
        }
    )
    console = Console(width=200, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(show(Picture([], {}, [event])))
    text = capture.get()
    assert "\x1b" not in text
    assert "hub/p[/]" in text
    assert "[red]Odd[/]" in text
    assert "note [bold]" in text
