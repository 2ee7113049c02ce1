"""Bursts count until the watch shows them; reviews of pods that never come have no say once that is seen."""

from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement.beliefs import REVIEWED
from webhook.facts import Homes, PlacedPod
from webhook.ledger import Ledger

NODES = ("n0", "n1", "n2")
BUILD = "build"
# When (seconds after the last), where, and how long the watch takes to show it.
REAL = st.tuples(st.floats(0, 3), st.sampled_from(NODES), st.floats(0.01, REVIEWED.age_seconds - 0.1))
MADE_UP = st.tuples(st.floats(0, 3) | st.floats(0, 120), st.integers(1, 30))


@given(st.lists(REAL, max_size=40))
def test_each_decision_counts_at_its_node_until_the_watch_shows_its_pod(
    decisions: list[tuple[float, str, float]],
) -> None:
    ledger, homes, now = Ledger(), Homes(), 0.0
    waiting: dict[str, tuple[float, str]] = {}
    for index, (gap, node, lag) in enumerate(decisions):
        now += gap
        shown = {key: PlacedPod(BUILD, at) for key, (when, at) in waiting.items() if when <= now}
        if shown:
            homes = homes.updated(shown)
            waiting = {key: entry for key, entry in waiting.items() if key not in shown}
        # Whatever came was shown at its time, though it is told of only now.
        for key in shown:
            ledger.see(key, homes)
        ledger.follow(homes, now)
        assert ledger.is_trusted
        assert ledger.total(BUILD) == len(waiting)
        for one in NODES:
            assert ledger.load(PlacedPod(BUILD, one)) == sum(at == one for _, at in waiting.values())
        ledger.record(f"a/{index}", PlacedPod(BUILD, node), now)
        waiting[f"a/{index}"] = (now + lag, node)


@given(st.lists(MADE_UP, max_size=30))
def test_once_five_decisions_of_the_last_minute_came_to_nothing_none_counts(attack: list[tuple[float, int]]) -> None:
    ledger, homes, now = Ledger(), Homes(), 0.0
    made_up: list[float] = []
    for gap, count in attack:
        now += gap
        ledger.follow(homes, now)
        if sum(now - 60 < when < now - REVIEWED.age_seconds for when in made_up) >= 5:
            assert ledger.total(BUILD) == 0
            assert all(ledger.load(PlacedPod(BUILD, node)) == 0 for node in NODES)
        # Never for longer than some seconds, however few there are.
        assert ledger.total(BUILD) <= sum(when > now - REVIEWED.age_seconds for when in made_up)
        for index in range(count):
            ledger.record(f"a/{len(made_up)}", PlacedPod(BUILD, NODES[index % 3]), now)
            made_up.append(now)


@given(st.lists(st.tuples(st.sampled_from(["record", "see", "follow"]), st.integers(0, 9), st.floats(0, 4))))
def test_counts_are_sums_of_what_is_remembered_whatever_happens(steps: list[tuple[str, int, float]]) -> None:
    ledger, now = Ledger(), 0.0
    for what, number, gap in steps:
        now += gap
        if what == "record":
            ledger.record(f"a/{number}", PlacedPod(BUILD, NODES[number % 3]), now)
        elif what == "see":
            ledger.see(f"a/{number}", Homes())
        else:
            ledger.follow(Homes({f"a/{number}": PlacedPod(BUILD, "n0")}), now)
        loads = [ledger.load(PlacedPod(BUILD, node)) for node in NODES]
        assert sum(loads) == ledger.total(BUILD) >= 0
        assert min(loads) >= 0
