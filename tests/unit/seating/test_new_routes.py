"""A proxy that is replaced, beside people who come: whose server counts as used."""

from dataclasses import dataclass
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from roost.seating.memory import dump, parse
from roost.seating.new_routes import UnusedServer, routed_anew
from roost.seating.people import HubUser, Mark, Server
from roost.seating.plan import Limits, Memory, View, observe, plan_seating

READY: Final = 1_800_000_000.0
# When the new proxy got its routes.
ROUTED: Final = READY + 400.0
GRACE: Final = 1200.0
# How often the hub asks its proxy who was there, in zero-to-jupyterhub.
POLL_SECONDS: Final = 60
# The hub notes no visit so soon after an activity.
RESOLUTION_SECONDS: Final = 30.0
NAMES: Final = ("ada", "bob", "cyd", "dan", "eve", "fay")


def unused(name: str, last_activity: float, ready_at: float = READY) -> UnusedServer:
    return UnusedServer(name, READY - 5.0, ready_at, last_activity)


def routed(*servers: UnusedServer, seen_at: float = ROUTED + 30.0) -> list[str]:
    return [server.name for server in routed_anew(servers, seen_at)]


THREE: Final = [unused(name, ROUTED + number) for number, name in enumerate(NAMES[:3])]


def test_servers_that_are_active_at_one_moment_long_before_a_look_got_new_routes() -> None:
    assert routed(*THREE) == ["ada", "bob", "cyd"]
    # Who came since is none of them.
    assert routed(*THREE, unused("dan", ROUTED + 12.0)) == ["ada", "bob", "cyd"]
    # Whose server got ready later has no older route.
    assert routed(*THREE, unused("dan", ROUTED + 19.0, ROUTED + 20.0)) == ["ada", "bob", "cyd"]


def test_in_doubt_they_were_used() -> None:
    # Dan's server was ready for less than five minutes: the hub may not have noted that he came.
    assert routed(*THREE, unused("dan", ROUTED, ROUTED - 299.0)) == ["ada", "bob", "cyd"]
    # One kept its route, so the proxy is the old one.
    assert routed(*THREE, unused("dan", READY)) == []
    # Two may come at the same moment.
    assert routed(*THREE[:2]) == []
    # No look has shown yet who was at the hub.
    assert routed(*THREE, seen_at=ROUTED + 14.0) == []


@dataclass(slots=True)
class Room:
    """A person's server, as the hub and its proxy know it; Unix times."""

    name: str
    # 0.0: never.
    comes_at: float
    leaves_at: float
    at_hub: float
    at_server: float = READY - 5.0
    route: float | None = READY
    was_opened: bool = False

    def visit(self, now: float) -> None:
        """The person's browser, once a second."""
        if not self.comes_at or not self.comes_at <= now <= self.leaves_at:
            return
        if not self.was_opened and now - self.at_hub > RESOLUTION_SECONDS:
            self.at_hub = now
        if self.route is not None:
            self.was_opened = True
            self.route = now

    def model(self) -> HubUser:
        started = READY - 5.0
        mark = Mark("biology", int(READY), started)
        return HubUser(self.name, self.at_hub, Server(started, self.at_server, "", True, mark), 1)


@st.composite
def rooms(draw: st.DrawFn) -> list[Room]:
    together = draw(st.integers(1, 1500))
    # Never, at any time, in the time without notes, and all at one moment.
    comings = st.one_of(
        st.just(0), st.integers(1, 1500), st.integers(1, 30), st.integers(together, together + 8)
    )
    found = []
    for name in NAMES:
        coming = draw(comings)
        comes_at = READY + coming if coming else 0.0
        leaves_at = comes_at + draw(st.sampled_from([1, 20, 2000]))
        # The hub takes a start for its user's activity.
        found.append(Room(name, comes_at, leaves_at, READY - 5.0))
    return found


@given(
    rooms(),
    # When the proxy goes away, for how long, and how long the hub gives routes.
    st.tuples(st.integers(5, 90) | st.integers(5, 900), st.integers(1, 150), st.integers(0, 5)),
    # Seconds between two looks, in turn.
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.booleans(),
)
def test_nobodys_server_is_stopped_who_came_before_or_after_the_proxy_was_replaced(
    rooms: list[Room], outage: tuple[int, int, int], gaps: list[int], is_restarted: bool
) -> None:
    gone, away, spread = outage
    memory = Memory(ready_at={(room.name, READY - 5.0): READY + 1.0 for room in rooms})
    looked_at = 0.0
    next_look = 5
    routed_at = 0.0
    stopped: set[str] = set()
    for second in range(5, 2700):
        now = READY + second
        is_away = gone <= second < gone + away
        if second == gone:
            for room in rooms:
                room.route = None
        for room in rooms:
            if room.name not in stopped and not is_away:
                room.visit(now)
        if second % POLL_SECONDS == 0 and not is_away:
            for number, room in enumerate(rooms):
                if room.route is None:
                    routed_at = now
                    room.route = now + spread * number / len(rooms)
                else:
                    room.at_server = max(room.at_server, room.route)
                    room.at_hub = max(room.at_hub, room.route)
        if second < next_look:
            continue
        next_look = second + gaps[second % len(gaps)]
        there = {room.name: room.model() for room in rooms if room.name not in stopped}
        view = View(now, there, looked_at=looked_at, seen_at=looked_at)
        observe(view, memory)
        looked_at = now
        if is_restarted:
            memory = parse(dump(memory))
        stopped |= {stop.name for stop in plan_seating(view, [], memory, Limits(0, 0, GRACE)).stops}
    opened = {room.name for room in rooms if room.was_opened}
    assert not stopped & opened
    absent = {room.name for room in rooms if not room.comes_at}
    if len(absent) >= 3 and routed_at >= READY + 301.0:
        assert stopped >= absent
