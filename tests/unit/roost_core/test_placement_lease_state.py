"""Whether somebody holds a Lease: by renewals that are seen, and by the observer's own clock."""

from collections.abc import Mapping
from typing import cast

import pytest

from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.kube.lease_watch import LeaseWatch
from roost_core.objects.fields import JSONObject
from roost_core.placement.lease_state import LeaseObserver, LeaseState
from tests.recorded_data import rows

# 2026-01-01T00:00:00Z
EPOCH = 1767225600.0


def lease(renewed: float, holder: str = "one", duration: object = 15) -> dict[str, object]:
    """A Lease that was renewed so many seconds after EPOCH; below a minute."""
    time = f"2026-01-01T00:00:{renewed:09.6f}Z"
    return {"spec": {"holderIdentity": holder, "renewTime": time, "leaseDurationSeconds": duration}}


class Seen:
    """An observer whose two clocks differ by EPOCH and a skew."""

    def __init__(self, skew: float = 0.0) -> None:
        self.observer = LeaseObserver()
        self._skew = skew

    def at(self, now: float, found: Mapping[str, object] | None) -> LeaseState:
        self.observer.see(found, now, EPOCH + now + self._skew)
        return self.observer.state


def test_before_the_first_look_nothing_is_known() -> None:
    assert LeaseObserver().state is LeaseState.UNKNOWN
    assert not LeaseState.UNKNOWN.is_away


@pytest.mark.parametrize(
    "found", [None, {}, {"spec": {}}, {"spec": None}, {"spec": {"holderIdentity": ""}}]
)
def test_a_lease_that_nobody_held_is_never_held(found: Mapping[str, object] | None) -> None:
    assert Seen().at(1, found) is LeaseState.NEVER_HELD
    assert LeaseState.NEVER_HELD.is_away


@pytest.mark.parametrize(("duration", "held", "stale"), rows("roost_core/lease-durations"))
def test_its_own_duration_counts(duration: object, held: float, stale: float) -> None:
    seen = Seen()
    states = [seen.at(now, lease(1, duration=duration)) for now in (1, held, stale)]
    assert states == [LeaseState.HELD, LeaseState.HELD, LeaseState.STALE]


@pytest.mark.parametrize(("is_seen_before", "left"), rows("roost_core/leases-given-back"))
def test_one_given_back_or_deleted_is_held_while_somebody_may_take_it(
    is_seen_before: bool, left: JSONObject | None
) -> None:
    seen = Seen()
    if is_seen_before:
        seen.at(1, lease(1))
    assert [seen.at(now, left) for now in (3, 30)] == [LeaseState.HELD, LeaseState.HELD]
    assert seen.at(32, left) is LeaseState.STALE
    assert seen.at(33, lease(33, holder="two")) is LeaseState.HELD


@pytest.mark.parametrize("found", [lease(1), lease(1, holder="", duration=1)])
def test_one_that_was_silent_before_the_first_look_is_stale_at_once(found: JSONObject) -> None:
    assert Seen().at(40, found) is LeaseState.STALE


def test_a_clock_that_differs_misleads_until_the_next_renewal_at_most() -> None:
    ahead = Seen(skew=3600)
    assert ahead.at(1, lease(1)) is LeaseState.STALE
    assert ahead.at(3, lease(3)) is LeaseState.HELD
    behind = Seen(skew=-3600)
    assert behind.at(1, lease(1)) is LeaseState.HELD
    assert behind.at(32, lease(1)) is LeaseState.STALE


@pytest.mark.parametrize("blind", [[(3, 53)], [(3, 18), (19, 50), (51, 61)]])
def test_silence_while_nothing_could_be_read_does_not_count_up_to_two_durations(
    blind: list[tuple[int, int]],
) -> None:
    seen = Seen()
    seen.at(1, lease(1))
    for since, until in blind:
        seen.observer.fail(since, is_refused=False)
        assert seen.at(until, lease(1)) is (LeaseState.HELD if until <= 61 else LeaseState.STALE)
    assert seen.at(61, lease(1)) is LeaseState.HELD
    assert seen.at(62, lease(1)) is LeaseState.STALE


def test_the_holder_could_renew_it_while_only_we_were_refused() -> None:
    seen = Seen()
    seen.at(1, lease(1))
    seen.observer.fail(3, is_refused=True)
    assert seen.at(33, lease(1)) is LeaseState.STALE


@pytest.mark.parametrize("is_refused", [True, False])
def test_no_renewal_is_believed_for_more_than_four_durations(is_refused: bool) -> None:
    seen = Seen()
    seen.at(1, lease(1))
    # As long without the API server as is excused.
    seen.observer.fail(3, is_refused=False)
    assert seen.at(33, lease(1)) is LeaseState.HELD
    states = []
    for now in (61, 62):
        seen.observer.fail(now, is_refused=is_refused)
        states.append(seen.observer.state)
    assert states == [LeaseState.HELD, LeaseState.STALE]


@pytest.mark.parametrize("is_refused", [True, False])
def test_what_was_seen_last_is_believed_for_two_durations_after_the_last_look(
    is_refused: bool,
) -> None:
    seen = Seen()
    seen.at(1, lease(1))
    for now, state in (
        (3, LeaseState.HELD),
        (31, LeaseState.HELD),
        (32, LeaseState.STALE),
        (900, LeaseState.STALE),
    ):
        seen.observer.fail(now, is_refused=is_refused)
        assert seen.observer.state is state
    assert seen.at(901, lease(900)) is LeaseState.HELD


def test_one_that_was_never_read_is_stale_after_two_durations() -> None:
    seen, states = Seen(), []
    for now in (1, 31, 32):
        seen.observer.fail(now, is_refused=True)
        states.append(seen.observer.state)
    assert states == [LeaseState.UNKNOWN, LeaseState.UNKNOWN, LeaseState.STALE]


@pytest.mark.parametrize(
    ("holder", "asked", "state"),
    [
        ("hub-roost-scheduler-new_1-2", "hub-roost-scheduler-new", LeaseState.HELD),
        ("hub-roost-scheduler-old_1-2", "hub-roost-scheduler-new", LeaseState.OUTDATED),
        ("hub-roost-scheduler-7d9f-x1_1-2", "hub-roost-scheduler-new", LeaseState.OUTDATED),
        # On the host's network; and where no host is asked for.
        ("ip-10-0-0-1_1-2", "hub-roost-scheduler-new", LeaseState.HELD),
        ("hub-roost-scheduler-old_1-2", "", LeaseState.HELD),
    ],
)
def test_a_holder_with_another_configuration_is_outdated(
    holder: str, asked: str, state: LeaseState
) -> None:
    observer = LeaseObserver("hub-roost-scheduler-", asked)
    observer.see(lease(1, holder=holder), 1, EPOCH + 1)
    assert observer.state is state
    assert state.is_away is (state is LeaseState.OUTDATED)
    observer.see(lease(1, holder=holder), 40, EPOCH + 40)
    assert observer.state is LeaseState.STALE


class FakeServer:
    """Answers each read with the next of its answers, the last one for ever."""

    def __init__(self, *answers: Mapping[str, object] | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def find(self, path: str, *, read_seconds: float) -> Mapping[str, object] | None:
        assert read_seconds
        self.asked.append(path)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def watch(server: FakeServer, told: list[str]) -> LeaseWatch:
    def clock() -> float:
        return 2.0 * len(server.asked)

    tell = {"on_change": lambda: told.append("changed"), "on_error": told.append}
    lease_of = cast("Client", server), "jhub", "hub-roost-scheduler"
    return LeaseWatch(*lease_of, **tell, steady=clock, wall=lambda: EPOCH + clock())  # type: ignore[arg-type]


def test_changes_are_told_once_and_the_first_look_always() -> None:
    server, told = FakeServer(lease(1), lease(3), lease(3)), list[str]()
    watched = watch(server, told)
    assert not watched.has_looked
    for _ in range(3):
        watched.look()
    assert watched.has_looked
    assert (
        server.asked[0] == "/apis/coordination.k8s.io/v1/namespaces/jhub/leases/hub-roost-scheduler"
    )
    assert told == ["changed"]
    assert watched.age_seconds() == pytest.approx(2)
    for _ in range(14):
        watched.look()
    assert told == ["changed"]
    watched.look()
    assert (watched.state, told) == (LeaseState.STALE, ["changed", "changed"])


@pytest.mark.parametrize(
    "error", [ApiError(401, "no token"), ApiError(403, "forbidden"), ClusterError("no route")]
)
def test_a_lease_that_cannot_be_read_is_believed_for_two_durations_and_told(
    error: ClusterError,
) -> None:
    told: list[str] = []
    watched = watch(FakeServer(lease(2), error), told)
    for _ in range(16):
        watched.look()
    assert (watched.state, watched.fault) == (LeaseState.HELD, str(error))
    watched.look()
    assert watched.state is LeaseState.STALE
    assert told == ["changed", *["lease/hub-roost-scheduler"] * 16, "changed"]


def test_a_look_that_fails_unexpectedly_is_believed_no_longer() -> None:
    watched = watch(FakeServer(lease(2), KeyError("unexpected")), [])
    for _ in range(17):
        watched.look()
    assert (watched.state, watched.fault) == (LeaseState.STALE, "not understood")


def test_whatever_stands_in_the_lease_the_thread_lives() -> None:
    watched = watch(
        FakeServer({"spec": "odd"}, {"spec": {"holderIdentity": 1, "renewTime": []}}, lease(4)), []
    )
    states = []
    for _ in range(3):
        watched.look()
        states.append(watched.state)
    assert states == [LeaseState.NEVER_HELD, LeaseState.NEVER_HELD, LeaseState.HELD]
