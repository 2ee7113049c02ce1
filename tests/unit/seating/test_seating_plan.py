"""What seating starts and stops, in worlds drawn at random and in single cases."""

import dataclasses
from collections import Counter
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from roost.seating.listed import in_order
from roost.seating.memory import Memory, ServerKey
from roost.seating.memory_file import dump, parse
from roost.seating.observing import View, observe
from roost.seating.pace import FAILURE_PAUSE_SECONDS, Pace
from roost.seating.people import ClassKey, HubUser, Mark, Server
from roost.seating.plan import LATE_SECONDS, Limits, SeatedClass, plan_seating
from roost_core.release.seating_pace import seating_seconds

START: Final = 1_800_000_000
GRACE: Final = 1200.0
NAMES: Final = ("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal")
KEY: Final = ClassKey("biology", START)
times = st.integers(-900, 2400).map(lambda seconds: float(START + seconds))


@st.composite
def servers(draw: st.DrawFn) -> Server | None:
    kind = draw(st.sampled_from(["none", "foreign", "ours", "other class's"]))
    if kind == "none":
        return None
    started = draw(times)
    pending = draw(st.sampled_from(["", "", "spawn", "stop"]))
    mark = None
    if kind != "foreign":
        name = "biology" if kind == "ours" else "chemistry"
        mark = Mark(name, START + draw(st.sampled_from([0, 600])), started)
    later = draw(st.sampled_from([0.0, 3.0, 40.0, 700.0]))
    return Server(started, started + later, pending, not pending, mark)


@st.composite
def users(draw: st.DrawFn) -> dict[str, HubUser]:
    found = {}
    for name in draw(st.sets(st.sampled_from(NAMES))):
        server = draw(servers())
        named = draw(st.integers(0, 2))
        starting = int(bool(server and server.pending == "spawn"))
        active = draw(st.none() | times)
        found[name] = HubUser(name, active, server, int(server is not None) + named, starting)
    return found


@st.composite
def memories(draw: st.DrawFn, people: dict[str, HubUser]) -> Memory:
    pace = Pace(window=draw(st.integers(1, 40)), paused_until=draw(st.just(0.0) | times))
    memory = Memory(pace=pace)
    for user in people.values():
        server = user.server
        if server and server.started is not None and draw(st.booleans()):
            ready_at = server.started + draw(st.sampled_from([1.0, 5.0, 60.0]))
            memory.ready_at[ServerKey(user.name, server.started)] = ready_at
    names = st.sampled_from(NAMES)
    memory.tries[KEY] = draw(st.dictionaries(names, st.integers(0, 3)))
    memory.skipped[KEY] = draw(st.dictionaries(names, st.just("why")))
    pace.failures_in_a_row = draw(st.integers(0, 3))
    pace.failed_spawns = draw(st.integers(0, 5))
    pace.failed_at = draw(st.just(0.0) | times)
    memory.ended = draw(st.dictionaries(names, times))
    return memory


@st.composite
def worlds(draw: st.DrawFn) -> tuple[View, list[SeatedClass], Memory, Limits]:
    people = draw(users())
    in_flight = frozenset(draw(st.sets(st.sampled_from(NAMES), max_size=3)))
    limits = Limits(draw(st.integers(0, 12)), draw(st.integers(0, 12)), GRACE)
    listed = draw(st.lists(st.sampled_from(NAMES), unique=True))
    seated = SeatedClass(KEY, draw(st.integers(1, 8)), listed, START - 400.0)
    other = SeatedClass(ClassKey("physics", START + 600), 8, listed[:3], START + 100.0)
    view = View(draw(times), people, in_flight)
    return view, [seated, other], draw(memories(people)), limits


@given(worlds())
def test_no_server_is_stopped_that_is_not_ours_or_that_anybody_used(
    world: tuple[View, list[SeatedClass], Memory, Limits],
) -> None:
    view, classes, memory, limits = world
    observe(view, memory)
    for stop in plan_seating(view, classes, memory, limits).stops:
        user = view.users[stop.name]
        server = user.server
        assert server is not None
        assert server.started == stop.started
        assert server.mark is not None
        assert server.is_ready
        assert view.now >= server.mark.class_start + GRACE
        ready_at = memory.ready_at.get(ServerKey(stop.name, stop.started))
        # Nobody was at the server since it was ready, nor at the hub since it was asked for.
        assert (server.last_activity or 0.0) <= (ready_at or stop.started + 1.0)
        assert (user.last_activity or 0.0) <= (server.last_activity or 0.0) + 1.0


@given(worlds())
def test_no_more_is_started_than_hub_and_booking_allow(
    world: tuple[View, list[SeatedClass], Memory, Limits],
) -> None:
    view, classes, memory, limits = world
    plan = plan_seating(view, classes, memory, limits)
    names = [start.name for start in plan.starts]
    assert len(set(names)) == len(names)
    starting = sum(user.starting for user in view.users.values())
    if limits.concurrent_spawn_limit > 1:
        room = limits.concurrent_spawn_limit - starting
        assert len(names) <= max(0, room)
        assert len(names) <= limits.concurrent_spawn_limit // 2
    if limits.active_server_limit:
        active = sum(user.active for user in view.users.values())
        assert len(names) <= max(0, limits.active_server_limit - active)
    assert not (names and view.now < memory.pace.paused_until)
    for start in plan.starts:
        user = view.users[start.name]
        seated = next(seated for seated in classes if seated.key == start.key)
        assert user.server is None
        assert start.name in seated.names
        assert start.name not in view.in_flight
        assert start.name not in memory.skipped.get(start.key, {})
        assert seated.begins_at <= view.now < start.key.start + LATE_SECONDS
    for seated in classes:
        mine = {start.name for start in plan.starts if start.key == seated.key}
        mine |= {
            user.name
            for user in view.users.values()
            if user.server
            and user.server.mark
            and (user.server.mark.booking, user.server.mark.class_start) == seated.key
        }
        before = {name for name, tries in memory.tries.get(seated.key, {}).items() if tries}
        assert len(mine) <= max(seated.people, len(mine & before)) or not plan.starts


@given(worlds())
def test_a_memory_reads_back_as_it_was_written(
    world: tuple[View, list[SeatedClass], Memory, Limits],
) -> None:
    memory = world[2]
    observe(world[0], memory)
    again = parse(dump(memory))
    # A window is learned anew.
    again.pace.window = memory.pace.window
    assert again == memory


@given(st.text() | st.builds(lambda text: '{"version": 1' + text, st.text()))
def test_any_text_is_a_memory(text: str) -> None:
    parse(text)


def seated(names: tuple[str, ...] = NAMES, people: int = 8, **more: Any) -> SeatedClass:
    return SeatedClass(KEY, people, names, START - 400.0, **more)


def view(now: float, *people: HubUser) -> View:
    return View(now, {user.name: user for user in people})


LIMITS: Final = Limits(64, 0, GRACE)
EVERYBODY: Final = [HubUser(name) for name in NAMES]


def test_starts_begin_in_their_order_with_the_mark_and_the_profile() -> None:
    plan = plan_seating(
        view(START - 300.0, *EVERYBODY), [seated(options={"profile": "course"})], Memory(), LIMITS
    )
    assert [start.name for start in plan.starts] == list(NAMES[:3])
    options = plan.starts[0].options
    assert options["profile"] == "course"
    assert len(options) == 2


def test_one_that_fails_is_skipped_and_three_in_a_row_make_a_pause() -> None:
    memory = Memory()
    for number, name in enumerate(NAMES[:3]):
        memory.note_failure(KEY, name, "500 no room", START - 300.0 + number)
    assert plan_seating(view(START - 200.0, *EVERYBODY), [seated()], memory, LIMITS) == (
        plan_seating(view(START - 200.0), [], memory, LIMITS)
    )
    later = view(START - 297.0 + FAILURE_PAUSE_SECONDS, *EVERYBODY)
    plan = plan_seating(later, [seated()], memory, LIMITS)
    assert [start.name for start in plan.starts] == ["dan"]
    # The next failure makes the next pause.
    memory.note_failure(KEY, "dan", "500 no room", later.now)
    assert memory.pace.paused_until == later.now + FAILURE_PAUSE_SECONDS


def test_a_busy_hub_is_asked_less_and_later() -> None:
    memory = Memory(pace=Pace(window=16))
    memory.pace.hub_is_busy(30.0, START - 300.0)
    assert memory.pace.window == 8
    assert not plan_seating(view(START - 290.0, *EVERYBODY), [seated()], memory, LIMITS).starts
    assert plan_seating(view(START - 269.0, *EVERYBODY), [seated()], memory, LIMITS).starts


def test_others_starts_take_seatings_half() -> None:
    others = [HubUser(f"other{number}", active=1, starting=1) for number in range(60)]
    memory = Memory(pace=Pace(window=32))
    full = plan_seating(view(START - 290.0, *EVERYBODY, *others), [seated()], memory, LIMITS)
    assert len(full.starts) == 4
    over = [*others, *(HubUser(f"more{number}", active=1, starting=1) for number in range(4))]
    none = plan_seating(view(START - 290.0, *EVERYBODY, *over), [seated()], memory, LIMITS)
    assert not none.starts


def server(activity: float, started: float = START - 300.0) -> Server:
    return Server(started, activity, "", True, Mark("biology", START, started))


def test_an_unused_server_is_stopped_after_the_grace_and_a_used_one_is_not() -> None:
    started = START - 300.0
    ready_at = started + 10.0
    # By the proxy: when its route was added.
    unused = HubUser("ada", started + 9.9, server(started + 9.9), 1)
    used = HubUser("bob", started + 10.1, server(started + 10.1), 1)
    # Came to the hub while the server was starting, and opened it before the hub's next look.
    watched = HubUser("cyd", started + 8.0, server(started), 1)
    unknown = HubUser("dan", started + 9.9, server(started + 9.9), 1)
    memory = Memory(ready_at={ServerKey(name, started): ready_at for name in ("ada", "bob", "cyd")})
    people = (unused, used, watched, unknown)
    counts: Counter[str] = Counter()
    for now in (START + GRACE - 1.0, START + GRACE):
        observe(view(now, *people), memory)
        counts.update(
            stop.name for stop in plan_seating(view(now, *people), [], memory, LIMITS).stops
        )
    assert counts == {"ada": 1}


def test_a_server_of_one_whose_start_by_seating_failed_is_their_own() -> None:
    started = START - 300.0
    ada = HubUser("ada", started, server(started), 1)
    now = START + GRACE
    assert plan_seating(view(now, ada), [], Memory(), LIMITS).stops
    failed = Memory(skipped={KEY: {"ada": "500 no room"}})
    assert not plan_seating(view(now, ada), [], failed, LIMITS).stops
    # The server began after the request had ended.
    ended = Memory(ended={"ada": started})
    assert plan_seating(view(now, ada), [], ended, LIMITS).stops
    later = dataclasses.replace(server(started + 5.0), started=started + 5.0)
    own = HubUser("ada", started, later, 1)
    assert not plan_seating(view(now, own), [], ended, LIMITS).stops


def test_a_later_class_keeps_a_persons_unused_server() -> None:
    started = START - 300.0
    ada = HubUser("ada", started, server(started), 1)
    memory = Memory(ready_at={ServerKey("ada", started): started + 5.0})
    now = START + GRACE
    later = SeatedClass(ClassKey("physics", START + 1500), 8, ("ada",), START + 1100.0)
    assert plan_seating(view(now, ada), [], memory, LIMITS).stops
    assert not plan_seating(view(now, ada), [later], memory, LIMITS).stops


def test_a_group_that_grows_is_seated_up_to_the_bookings_people() -> None:
    memory = Memory(pace=Pace(window=8))
    memory.tries[KEY] = {"ada": 1, "bob": 1}
    plan = plan_seating(view(START - 200.0, *EVERYBODY), [seated(people=3)], memory, LIMITS)
    assert [start.name for start in plan.starts] == ["ada", "bob", "cyd"]


@given(
    # Minutes between two classes with the same people.
    st.integers(5, 120),
    # By person: whether they used a server of the first class and of the second one, which they
    # stopped, and how often theirs was asked for in vain.
    st.dictionaries(
        st.sampled_from(NAMES), st.tuples(st.booleans(), st.booleans(), st.integers(0, 2))
    ),
    st.sampled_from(["biology", "chemistry"]),
)
def test_who_used_a_server_of_another_class_did_not_come_to_this_one(
    minutes: int, people: dict[str, tuple[bool, bool, int]], booking: str
) -> None:
    first = ClassKey(booking, START - 60 * minutes)
    memory = Memory()
    memory.tries[first] = dict.fromkeys(people, 1)
    memory.tries[KEY] = {name: tries for name, (_, _, tries) in people.items()}
    for is_second, key in enumerate((first, KEY)):
        started = key.start - 60.0
        mark = Mark(key.booking, key.start, started)
        users = []
        for name, uses in people.items():
            if uses[is_second]:
                in_use = Server(started, started + 50.0, "", True, mark)
                memory.ready_at[ServerKey(name, started)] = started + 10.0
                memory.tries[key][name] += 1
                users.append(HubUser(name, started + 50.0, in_use, 1))
        observe(view(started + 55.0, *users), memory)
    memory = parse(dump(memory))
    came = {name for name, (_, used_here, _) in people.items() if used_here}
    assert memory.who_came(KEY) == came
    used_first = {name for name, (used_there, _, _) in people.items() if used_there}
    assert memory.who_came(first) == used_first
    for name in NAMES:
        plan = plan_seating(view(START, *EVERYBODY), [seated((name,))], memory, LIMITS)
        assert bool(plan.starts) == (name not in came)


def test_who_came_early_last_time_is_started_first_and_who_never_was_there_last() -> None:
    known = {
        "ada": HubUser("ada", 1.0),
        "bob": HubUser("bob", 9.0),
        "cyd": HubUser("cyd", None),
        "dan": HubUser("dan", 5.0),
    }
    came = {"dan": 60.0, "ada": -30.0}
    order = in_order(["cyd", "bob", "dan", "ada"], known, came)
    assert order == ["ada", "dan", "bob", "cyd"]


@given(st.integers(1, 2000), st.integers(0, 500), st.floats(1.0, 120.0))
def test_the_first_start_is_early_enough_for_the_pace(
    people: int, limit: int, start_seconds: float
) -> None:
    limits = Limits(limit, 0, GRACE)
    ahead = seating_seconds(people, limit, start_seconds)
    # A hub on which each start takes so long, looked at once a second.
    window, done, now = 3, 0, 0.0
    going: list[float] = []
    while done + len(going) < people:
        now += 1.0
        ended = [end for end in going if end <= now]
        going = [end for end in going if end > now]
        done += len(ended)
        window += len(ended)
        room = min(window, limits.most_starting) - len(going)
        new = max(0, min(4, room, people - done - len(going)))
        going += [now + start_seconds] * new
    assert max(going) <= ahead + 0.1 * ahead


def test_a_start_whose_stream_broke_off_is_ready_at_the_look_that_finds_it_so() -> None:
    started = START - 300.0
    mark = Mark("biology", START, started)
    pending = HubUser("ada", started, Server(started, started, "spawn", False, mark), 1, 1)
    ready = HubUser("ada", started + 7.0, Server(started, started + 7.0, "", True, mark), 1)
    for gap, is_stopped in ((2.0, True), (30.0, False)):
        memory = Memory()
        observe(view(started + 6.0, pending), memory)
        first = dataclasses.replace(view(started + 6.0 + gap, ready), looked_at=started + 6.0)
        observe(first, memory)
        late = view(START + GRACE, ready)
        observe(late, memory)
        assert bool(plan_seating(late, [], memory, LIMITS).stops) == is_stopped


def test_a_server_whose_route_came_after_it_was_ready_is_kept_as_if_it_was_used() -> None:
    started = START - 300.0
    mark = Mark("biology", START, started)
    checked = HubUser("ada", started, Server(started, started, "check", False, mark), 1)
    ready = HubUser("ada", started, Server(started, started, "", True, mark), 1)
    # The hub that began anew gave the route after the look, or a teacher opened the server: both
    # leave this.
    routed = HubUser("ada", started + 9.0, Server(started, started + 9.0, "", True, mark), 1)
    for last, is_stopped in ((ready, True), (routed, False)):
        memory = Memory()
        for seconds, user in ((6.0, checked), (7.0, ready), (10.0, last)):
            look = view(started + seconds, user)
            observe(dataclasses.replace(look, looked_at=started + seconds - 1.0), memory)
        late = view(START + GRACE, last)
        observe(late, memory)
        assert bool(plan_seating(late, [], memory, LIMITS).stops) == is_stopped


CROWD: Final = tuple(f"user{number}" for number in range(30))
FAILURES: Final = st.lists(
    st.tuples(
        st.sampled_from(["failed", "failed", "failed", "refused", "busy", "unknown"]),
        # Seconds until the next look, whether the container is restarted, and whether somebody
        # else's server has just started.
        st.sampled_from([1.0, 31.0, 301.0]),
        st.booleans(),
        st.sampled_from([False, False, True]),
    ),
    max_size=30,
)


@given(FAILURES)
def test_a_hub_on_which_every_start_of_seatings_fails_does_not_end_itself(
    steps: list[tuple[str, float, bool, bool]],
) -> None:
    memory = Memory()
    # Classes follow one another, so there is always one to seat people for.
    now = START - 300.0
    in_a_row = 0
    others: list[HubUser] = []
    for number, (result, seconds, is_restarted, others_start) in enumerate(steps):
        key = ClassKey("biology", int(now) + 300)
        people = [HubUser(name) for name in CROWD]
        if others_start:
            in_a_row = 0
            others = [HubUser(f"other{number}", now, Server(now, now, "", True, None), 1)]
        seen = view(now, *people, *others)
        observe(seen, memory)
        plan = plan_seating(seen, [SeatedClass(key, 30, CROWD, now - 1.0)], memory, LIMITS)
        for start in plan.starts:
            if result == "busy":
                memory.pace.hub_is_busy(30.0, now)
            elif result != "unknown":
                is_refusal = result == "refused"
                in_a_row += not is_refusal
                memory.note_failure(key, start.name, "why", now, is_refusal=is_refusal)
        assert in_a_row < 5
        if is_restarted:
            memory = parse(dump(memory))
        now += seconds


def test_four_who_are_refused_end_nobodys_seating_and_four_failures_do() -> None:
    for is_refusal in (True, False):
        memory = Memory()
        for name in NAMES[:4]:
            memory.note_failure(KEY, name, "why", START - 350.0, is_refusal=is_refusal)
        later = view(START - 350.0 + FAILURE_PAUSE_SECONDS, *EVERYBODY)
        assert bool(plan_seating(later, [seated()], memory, LIMITS).starts) == is_refusal


@given(worlds(), st.sampled_from(NAMES), st.booleans())
def test_no_server_is_stopped_whose_request_had_ended_before_it_began(
    world: tuple[View, list[SeatedClass], Memory, Limits], name: str, is_skipped: bool
) -> None:
    view, classes, memory, limits = world
    server = view.users[name].server if name in view.users else None
    if server is None or server.mark is None or server.started is None:
        return
    if is_skipped:
        memory.skipped.setdefault(ClassKey(server.mark.booking, server.mark.class_start), {})[
            name
        ] = "why"
    else:
        memory.ended[name] = server.started - 1.0
        earlier = dataclasses.replace(server.mark, asked_at=server.started - 2.0)
        its = dataclasses.replace(server, mark=earlier)
        people = {**view.users, name: dataclasses.replace(view.users[name], server=its)}
        view = dataclasses.replace(view, users=people)
    observe(view, memory)
    assert name not in {stop.name for stop in plan_seating(view, classes, memory, limits).stops}
