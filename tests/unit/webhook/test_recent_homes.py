"""Builds that were sent to a home lately count before the watch shows them, and what never comes doesn't."""

import dataclasses

import pytest

from roost_core.placement.beliefs import REVIEWED, REVIEWED_UNSEEN
from tests.builders import NAMESPACE, Desk, build_pod, builder_nodes, facts, homes_of, place
from tests.unit.webhook.small_hub import FIVE, RING
from webhook.facts import Homes, PlacedPod
from webhook.ledger import Ledger, unnamed


def homes_of_builds(desk: Desk, count: int, name: str = "build") -> list[str]:
    """Where so many builds of one repository are sent, one after the other."""
    return [homes_of(desk.place(build_pod(name=f"{name}-{index}")))[0][1] for index in range(count)]


def test_a_burst_counts_before_the_watch_shows_it() -> None:
    # With ten running the bound has grown from 4 to ceil(2 x 11 / 5) = 5, so the first node has room again.
    expected = [RING[0]] * 4 + [RING[1]] * 4 + [RING[2]] * 2 + [RING[0]]
    assert homes_of_builds(Desk(known=FIVE), 11) == expected
    desk, body = Desk(known=FIVE), build_pod()
    body["metadata"] |= {"name": None, "generateName": "build-"}
    # Pods whose names are yet to be made are told apart.
    assert [homes_of(desk.place(body, uid=f"uid-{index}"))[0][1] for index in range(5)] == expected[:5]


def test_repeated_posts_of_one_pod_count_once_and_get_the_same_home() -> None:
    desk = Desk(known=FIVE)
    for index in range(3):
        desk.place(build_pod(name=f"other-{index}"))
    assert {homes_of(desk.place(build_pod()))[0][1] for _ in range(20)} == {RING[0]}
    shown = {f"{NAMESPACE}/other-{index}": RING[0] for index in range(2)} | {f"{NAMESPACE}/build-1": RING[0]}
    desk.reviewer.pod_seen(NAMESPACE, "other-2")
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=shown)
    assert homes_of(desk.place(build_pod()))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fourth")))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fifth")))[0][1] == RING[1]


@pytest.mark.parametrize("own", RING[:2])
def test_a_repeated_post_does_not_raise_the_bound_by_itself_nor_lower_its_nodes_load(own: str) -> None:
    nodes = [RING[0]] * 4 + [RING[1]] * 2 + [RING[2]] * 3
    builds = {f"{NAMESPACE}/other-{index}": node for index, node in enumerate(nodes)}
    builds[f"{NAMESPACE}/build-1"] = own
    # Nine others: with this one the bound is 2 x 10 / 5 = 4, which the first node has.
    desk = Desk(known=facts(*builder_nodes(), builders=" ".join(RING), builds=builds))
    assert homes_of(desk.place(build_pod()))[0][1] == RING[1]


def test_a_dry_run_leaves_no_trace() -> None:
    desk = Desk(known=FIVE)
    for index in range(4):
        desk.place(build_pod(name=f"build-{index}"), dryRun=True)
    assert homes_of(desk.place(build_pod(name="real")))[0][1] == RING[0]
    assert all(is_dry_run for _, is_dry_run, _ in desk.outcomes[:-1])


def test_what_the_watch_never_shows_is_forgotten_within_seconds_or_minutes_while_it_is_broken() -> None:
    for known, later in ((FIVE, RING[0]), (dataclasses.replace(FIVE, shows_new_pods=False), RING[1])):
        desk = Desk(known=known)
        assert homes_of_builds(desk, 5)[4] == RING[1]
        desk.now += REVIEWED.age_seconds + 0.1
        assert homes_of_builds(desk, 1, "later") == [later]
    # No doubt is cast.
    desk.now += REVIEWED_UNSEEN.age_seconds
    assert homes_of_builds(desk, 5, "next") == [RING[0]] * 4 + [RING[1]]


@pytest.mark.slow
def test_reviews_of_pods_that_never_come_move_no_home_once_it_is_seen() -> None:
    desk = Desk(known=FIVE)
    moved = 0
    for second in range(600):
        desk.now += 1
        for index in range(5):
            desk.answer(build_pod(name=f"made-up-{second}-{index}"))
        real = desk.place(build_pod(name=f"asked-{second}"), dryRun=True)
        moved += homes_of(real)[0][1] != RING[0]
    assert 0 < moved <= REVIEWED.age_seconds


def test_after_a_flood_of_made_up_reviews_pods_that_come_bring_back_trust() -> None:
    desk = Desk(known=FIVE)
    homes_of_builds(desk, 10, "made-up")
    desk.now += REVIEWED.age_seconds + 0.1
    for index in range(8):
        desk.place(build_pod(name=f"real-{index}"))
        desk.reviewer.pod_seen(NAMESPACE, f"real-{index}")
    assert homes_of_builds(desk, 5) == [RING[0]] * 4 + [RING[1]]


def test_a_build_that_is_neither_bound_nor_sent_anywhere_counts_among_the_running() -> None:
    # Four at home are at the floor of the bound; with eight more somewhere it is ceil(2 x 13 / 5) = 6.
    lost = {f"{NAMESPACE}/lost-{index}": "" for index in range(8)}
    busy = {f"{NAMESPACE}/busy-{index}": RING[0] for index in range(4)}
    assert homes_of(place(build_pod(), facts(*builder_nodes(), builders=" ".join(RING), builds=busy)))[0][1] == RING[1]
    both = facts(*builder_nodes(), builders=" ".join(RING), builds=busy | lost)
    assert homes_of(place(build_pod(), both))[0][1] == RING[0]


@pytest.mark.parametrize(("count", "remembered"), [(4096, 4096), (10_000, 0)])
def test_as_many_decisions_as_are_remembered_count_until_the_watch_shows_them_and_after_a_flood_none(
    count: int, remembered: int
) -> None:
    ledger = Ledger()
    for index in range(count):
        ledger.record(f"a/{index}", PlacedPod("build", f"n{index % 3}"), 0.0)
    assert len(ledger._decisions) == 4096
    assert ledger.is_trusted is bool(remembered)
    assert ledger.total("build") == remembered
    assert sum(ledger.load(PlacedPod("build", f"n{index}")) for index in range(3)) == remembered
    ledger.follow(Homes({f"a/{index}": PlacedPod("build", "n0") for index in range(1000)}), 1.0)
    assert ledger.total("build") == max(0, remembered - 1000)
    ledger.follow(Homes(), 31.0)
    assert ledger.total("build") == 0


def test_a_review_that_began_with_earlier_facts_still_counts_what_they_do_not_show() -> None:
    ledger, earlier = Ledger(), Homes()
    pod = PlacedPod("build", "n0")
    ledger.record("a/one", pod, 0.0)
    later = earlier.updated({"a/one": pod})
    ledger.see("a/one", later)
    ledger.follow(earlier, 0.1)
    assert ledger.load(pod) == ledger.total("build") == 1
    ledger.follow(later, 0.2)
    assert ledger.load(pod) == ledger.total("build") == 0


def test_a_pod_whose_name_was_made_counts_once_when_the_watch_shows_it() -> None:
    desk = Desk(known=FIVE)
    body = build_pod()
    body["metadata"] |= {"name": None, "generateName": "build-"}
    for index in range(3):
        desk.place(body, uid=f"uid-{index}")
    shown = {f"{NAMESPACE}/build-x7k2{index}": RING[0] for index in range(3)}
    desk.facts = facts(*builder_nodes(), builders=" ".join(RING), builds=shown)
    assert homes_of(desk.place(build_pod(name="fourth")))[0][1] == RING[0]
    assert homes_of(desk.place(build_pod(name="fifth")))[0][1] == RING[1]


def test_pods_that_were_there_before_are_not_taken_for_one_whose_name_was_made_since() -> None:
    ledger, before = Ledger(), Homes({"a/build-abcde": PlacedPod("build", "n0")})
    ledger.follow(before, 0.0)
    ledger.record(f"a/{unnamed('build-', 'uid')}", PlacedPod("build", "n1"), 0.0)
    ledger.follow(before.updated({"a/other-abcde": PlacedPod("build", "n0")}), 0.1)
    assert ledger.total("build") == 1
    ledger.follow(before.updated({"a/build-fghij": PlacedPod("build", "n1")}), 0.2)
    assert ledger.total("build") == 0
