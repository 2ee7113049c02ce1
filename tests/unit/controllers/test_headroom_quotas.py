"""Placeholders and ResourceQuotas: nobody is refused for a placeholder."""

from array import array
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.contract.actions import Notice, Planned, ScaleSet
from roost.controllers.contract.bookings import BookingSource
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost.controllers.headroom.quota_room import (
    CutElsewhere,
    Demand,
    UseByStatus,
    cut_by,
    joint_cut,
)
from roost.controllers.runtime.watching.quotas import WatchedQuotas
from roost.controllers.runtime.watching.stateful_sets import read_stateful_set
from roost_core.kube.watches import Watches
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.quotas import (
    AT_ONCE,
    ContainerDefaults,
    Quota,
    read_container_defaults,
    read_quota,
)
from roost_core.placement.headroom_history import History
from roost_core.placement.headroom_windows import parse_moment
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL
from roost_core.release.bookings import Limits, parse_events
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE, release_document
from tests.evidence import Server, hear
from tests.unit.controllers.planners import planner_from

MIB = 2**20
CLASS = "hub-placeholder"
NOW = parse_moment("2026-10-05T12:00", "Europe/Berlin")
TINY = {"requests": {"cpu": "100m", "memory": "128Mi"}}


def _planner(
    *sets: dict[str, Any],
    events: dict[str, Any] | None = None,
    values: dict[str, Any] | None = None,
) -> Planner[Any]:
    named = {"placeholders": [{"name": each["name"]} for each in sets]}
    document = release_document({**named, **(values or {})})
    for entry, each in zip(document["placeholders"], sets, strict=True):
        entry |= {"resources": TINY, **each}
    if events is not None:
        document["events"] |= {"enabled": True, "maxPeople": 500, "maxPlaceholders": 1000, **events}
    return planner_from(HEADROOM, document)


def _quota(
    name: str = "team",
    scopes: dict[str, Any] | None = None,
    namespace: str = NAMESPACE,
    **hard: Any,
) -> Quota:
    given = {key.replace("__", "/").replace("_", "."): str(most) for key, most in hard.items()}
    spec = {"hard": given, **(scopes or {})}
    return read_quota({"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def _pod(name: str, labels: dict[str, str], **changes: Any) -> Pod:
    given: dict[str, Any] = {
        "spec": PodSpec(requests=(("cpu", 100), ("memory", 128 * MIB))),
        "created": NOW - 3600,
        **changes,
    }
    return Pod(NAMESPACE, name, labels=labels, **given)


def _users(count: int, **changes: Any) -> list[Pod]:
    labels = {"component": "singleuser-server"}
    return [_pod(f"jupyter-{number}", labels, **changes) for number in range(count)]


def _placeholders(count: int, set_name: str = "default") -> list[Pod]:
    labels = {
        PLACEHOLDER_SET_LABEL: set_name,
        OWN_INSTANCE_LABEL: RELEASE,
        "component": "user-placeholder",
    }
    return [_pod(f"{set_name}-{number}", labels, priority_class=CLASS) for number in range(count)]


def _plan(
    planner: Planner[Any],
    *quotas: Quota,
    pods: list[Pod] | None = None,
    replicas: int = 1,
    resources: dict[str, Any] | None = None,
    defaults: ContainerDefaults | None = None,
    sets: tuple[str, ...] = ("default",),
    knows_quotas: bool = True,
    is_scaled_by_us: bool = False,
    steady: float = 1000.0,
    histories: dict[str, str] | None = None,
) -> Planned[Any]:
    states = {}
    for name in sets:
        keeper = f"{RELEASE}-roost-placeholder-{name}"
        states[keeper] = StatefulSetState(
            keeper,
            f"uid-{name}",
            replicas,
            is_scaled_by_us=is_scaled_by_us,
            resources=TINY if resources is None else resources,
            priority_class=CLASS,
        )
    snapshot = Snapshot(
        RELEASE,
        NAMESPACE,
        pods={pod.key: pod for pod in pods or ()},
        stateful_sets=states,
        quotas={quota.name: quota for quota in quotas} if knows_quotas else None,
        container_defaults={} if defaults is None else {"limits": defaults},
        histories=histories,
    )
    return planner.plan(snapshot, Moment(NOW, steady))


def _number(planned: Planned[Any], before: int = 1) -> int:
    numbers = [action.replicas for action in planned.actions if isinstance(action, ScaleSet)]
    return numbers[0] if numbers else before


BOOKED = {
    "booked": [
        {"name": "lecture", "people": 30, "start": "2026-10-05T12:05", "timeZone": "Europe/Berlin"}
    ]
}
NONE = {"name": "default", "replicas": 0}


def test_who_has_come_to_a_booked_event_needs_room_no_more() -> None:
    begun = {"booked": [{**BOOKED["booked"][0], "start": "2026-10-05T11:58"}]}
    come = _users(10, created=NOW - 30)
    planned = _plan(_planner(NONE, events=begun), _quota(pods=50), pods=come)
    # Twenty have yet to come, and leave as much to placeholders.
    assert _number(planned) == 20


def test_what_a_quota_leaves_is_told_once_an_hour() -> None:
    planner = _planner(NONE, events=BOOKED)
    told = []
    for seconds in (0, 1, 3599, 3600, 3601, 7199, 7200):
        planned = _plan(planner, _quota(pods=50), replicas=20, steady=1000.0 + seconds)
        notices = [action for action in planned.actions if isinstance(action, Notice)]
        if any(notice.reason == "HeadroomQuota" for notice in notices):
            told.append(seconds)
    assert told == [0, 3600, 7200]


def test_pods_that_are_no_placeholders_of_this_release_take_their_room() -> None:
    others = {PLACEHOLDER_SET_LABEL: "default", OWN_INSTANCE_LABEL: "another"}
    for labels, number in (
        (others, 10),
        ({OWN_INSTANCE_LABEL: RELEASE, "component": "webhook"}, 10),
        ({**others, OWN_INSTANCE_LABEL: RELEASE}, 20),
    ):
        there = [_pod(f"one-{index}", labels) for index in range(10)]
        planned = _plan(_planner(NONE, events=BOOKED), _quota(pods=50), pods=there)
        assert _number(planned) == number


@pytest.mark.parametrize(
    ("quota", "number"),
    [
        # Nothing is left beside thirty people; some is; all is.
        ({"pods": 20}, 0),
        ({"pods": 50}, 20),
        ({"pods": 60}, 30),
        ({"count__pods": 50}, 20),
        # What is scarcest counts: 3 CPU for people, and 1 for ten placeholders.
        ({"pods": 60, "requests_cpu": "4"}, 10),
        ({"cpu": "4"}, 10),
        ({"requests_memory": "5Gi"}, 10),
        # No pod's affair.
        ({"requests_storage": 1, "services": 1, "count__jobs_batch": 0}, 30),
        # Placeholders without limits take nothing of it.
        ({"limits_memory": "1Gi"}, 30),
    ],
)
def test_people_who_are_booked_find_room_in_the_quota(quota: dict[str, Any], number: int) -> None:
    planned = _plan(_planner(NONE, events=BOOKED), _quota(**quota), replicas=1)
    assert _number(planned) == number
    assert planned.gauges["headroom_replicas"]["default",] == number
    assert planned.gauges["headroom_quota_cut"].get(("default",), 0) == 30 - number
    # A quota that leaves all that is asked for is no reason.
    reasons = [action.why for action in planned.actions if isinstance(action, ScaleSet)]
    assert any("ResourceQuota" in why for why in reasons) == (number < 30)


def test_pods_that_only_the_quota_counts_take_room_and_our_placeholders_take_none() -> None:
    # Twelve pods are others', which finished and aren't seen; thirty people come.
    quota = replace(_quota(count__pods=60), used={"count/pods": 20})
    planned = _plan(_planner(NONE, events=BOOKED), quota, pods=_placeholders(8), replicas=8)
    assert _number(planned) == 18


def test_of_quotas_that_leave_as_much_the_first_is_told() -> None:
    quotas = [_quota(name, pods=50, requests_cpu="5") for name in ("b", "a")]
    planned = _plan(_planner(NONE, events=BOOKED), *quotas)
    (scale,) = [action for action in planned.actions if isinstance(action, ScaleSet)]
    assert scale.replicas == 20
    assert "ResourceQuota a allows 50 pods" in scale.why
    first = CutElsewhere(3, 5, "first")
    for people, why in ((4, "second"), (5, "first"), (6, "first")):
        both = joint_cut(first, CutElsewhere(4, people, "second"))
        assert both == CutElsewhere(7, min(people, 5), why)


def test_a_quota_of_placeholders_alone_needs_no_room_for_people() -> None:
    alone = {"scopeName": "PriorityClass", "operator": "In", "values": [CLASS]}
    quota = _quota(scopes={"scopeSelector": {"matchExpressions": [alone]}}, pods=30)
    demand = Demand("default", 30, 30, TINY, CLASS)
    assert cut_by([demand], [quota], (), UseByStatus()) == {}


def test_a_set_without_placeholders_is_told_of_no_quota() -> None:
    planner = _planner(NONE, {"name": "other", "replicas": 30})
    planned = _plan(planner, _quota(pods=25), sets=("default", "other"), replicas=0)
    told = _told(planned)
    assert len(told) == 1
    assert "placeholders of set other" in told[0]


def test_who_is_there_already_is_not_awaited_once_more() -> None:
    learns = {"name": "default", "replicas": 30, "learn": {"min": 0, "max": 99, "timeZone": "UTC"}}
    planner = _planner(learns)
    # A hundred were there at most, on a single day, which forecasts nothing.
    levels = array("i", [100] + [0] * 1439)
    history = History(int(NOW // 60) - len(levels), levels).as_text()
    for users, number in ((60, 30), (61, 30), (60, 29)):
        quota = _quota(pods=100 + number)
        planned = _plan(planner, quota, pods=_users(users), histories={"default": history})
        assert _number(planned) == number


@given(pods=st.integers(0, 90), used=st.none() | st.integers(0, 90))
def test_who_asks_without_seeing_pods_gets_what_the_quotas_own_status_leaves(
    pods: int, used: int | None
) -> None:
    """A status that says nothing yet takes nothing."""
    quota = _quota(pods=pods)
    if used is not None:
        quota = replace(quota, used={"pods": used})
    demand = Demand("default", 30, 30, TINY, CLASS)
    cut = cut_by([demand], [quota], (), UseByStatus()).get("default")
    left = max(0, pods - (used or 0) - 30)
    assert (30 if cut is None else cut.replicas) == min(30, left)


def test_where_a_set_says_nothing_of_its_size_the_values_do() -> None:
    planner = _planner(NONE, events=BOOKED)
    assert _number(_plan(planner, _quota(cpu="4"), resources={})) == 10


def test_what_a_quota_leaves_is_told_once_with_what_to_ask_for() -> None:
    planner = _planner(NONE, events=BOOKED)
    told = [
        action
        for steady in (1000.0, 1010.0, 1020.0)
        for action in _plan(planner, _quota(pods=20), steady=steady).actions
        if isinstance(action, Notice) and action.reason == "HeadroomQuota"
    ]
    (notice,) = told
    assert notice.message == (
        "0 of 30 placeholders of set default (event lecture at Mon 2026-10-05 12:05 CEST with 30"
        " people), so that nobody is refused for them: ResourceQuota team allows 20 pods, others"
        " take 0, and 30 people may come; for all placeholders ask for 60."
    )


def test_as_people_come_they_and_those_to_come_always_find_room() -> None:
    planner = _planner(NONE, events=BOOKED)
    number = 1
    for came in range(31):
        pods = [*_users(came, created=NOW), *_placeholders(number)]
        number = _number(_plan(planner, _quota(pods=50), pods=pods, replicas=number), number)
        assert number + max(AT_ONCE, 30 - came) + came <= 50


def test_the_values_own_number_leaves_room_for_people_whom_nobody_foresaw() -> None:
    static = _planner({"name": "default", "replicas": 3})
    assert _number(_plan(static, _quota(pods=20), replicas=3), 3) == 0
    assert _number(_plan(static, _quota(pods=22), replicas=0), 0) == 2
    # It comes back once there is room, and is left alone where there is no quota.
    assert _number(_plan(static, _quota(pods=40), replicas=0), 0) == 3
    assert _number(_plan(static, replicas=0), 0) == 0
    assert _number(_plan(static, replicas=7), 7) == 7


def test_a_number_that_a_quota_cut_comes_back_when_the_quota_goes() -> None:
    static = _planner({"name": "default", "replicas": 3})
    assert _number(_plan(static, _quota(pods=20), replicas=3), 3) == 0
    assert _number(_plan(static, replicas=0), 0) == 3


def test_it_comes_back_too_where_the_controllers_that_cut_it_are_gone() -> None:
    static = _planner({"name": "default", "replicas": 3})
    assert _number(_plan(static, replicas=0, is_scaled_by_us=True), 0) == 3
    # What an operator scaled by hand stays.
    assert _number(_plan(static, replicas=0), 0) == 0


@pytest.mark.parametrize(
    ("entries", "is_ours"),
    [
        ([("roost-controllers", {"f:spec": {"f:replicas": {}}})], True),
        (
            [("roost-controllers", {"f:status": {}}), ("kubectl", {"f:spec": {"f:replicas": {}}})],
            False,
        ),
        ([("helm", None)], False),
        # Kubernetes' own, which counts what is there.
        ([("roost-controllers", {"f:status": {"f:replicas": {}}})], False),
        (None, False),
    ],
)
def test_whose_number_a_set_has_is_read_from_its_managed_fields(
    entries: list[tuple[str, Any]] | None, is_ours: bool
) -> None:
    fields = [{"manager": manager, "fieldsV1": owned} for manager, owned in entries or ()]
    body = {
        "metadata": {"name": "set", **({"managedFields": fields} if entries else {})},
        "spec": {"replicas": 3},
    }
    assert read_stateful_set(body).is_scaled_by_us == is_ours


HUBS = {"podClasses": {"user": {"match": {"namespaceSelector": {"matchLabels": {"hub": "yes"}}}}}}
LABELS = {NAMESPACE: {}, "physics": {"hub": "yes"}, "biology": {"hub": "yes"}, "team": {}}


def _plan_hubs(
    planner: Planner[Any],
    *quotas: Quota,
    bookings: tuple[BookingSource, ...] = (),
    pods: list[Pod] | None = None,
    histories: dict[str, str] | None = None,
    awaits_hub_quotas: bool = False,
    steady: float = 1000.0,
) -> Planned[Any]:
    keeper = f"{RELEASE}-roost-placeholder-default"
    snapshot = Snapshot(
        RELEASE,
        NAMESPACE,
        pods={pod.key: pod for pod in pods or ()},
        stateful_sets={keeper: StatefulSetState(keeper, "uid", 1, resources=TINY)},
        quotas={f"{quota.namespace}/{quota.name}": quota for quota in quotas},
        bookings={f"{source.hub}/{source.name}": source for source in bookings},
        namespaces=LABELS,
        histories=histories,
        awaits_hub_quotas=awaits_hub_quotas,
    )
    return planner.plan(snapshot, Moment(NOW, steady))


def _told(planned: Planned[Any]) -> list[str]:
    return [
        action.message
        for action in planned.actions
        if isinstance(action, Notice) and action.reason == "HeadroomQuota"
    ]


def _booking(hub: str, people: int) -> BookingSource:
    read = Reader()
    events = parse_events(
        read, [{**BOOKED["booked"][0], "people": people}], "events", Limits(("default",), 500)
    )
    assert not read.faults
    return BookingSource("roost-events", f"uid-{hub}", events, hub=hub)


def test_no_placeholders_for_people_whom_the_quota_of_their_own_namespace_keeps_out() -> None:
    planner = _planner(NONE, events={}, values=HUBS)
    both = (_booking("physics", 30), _booking("biology", 30))
    assert _number(_plan_hubs(planner, bookings=both)) == 60
    planned = _plan_hubs(planner, _quota(pods=12, namespace="physics"), bookings=both)
    assert _number(planned) == 42
    assert planned.gauges["headroom_quota_cut"]["default",] == 18
    # Who has come is in already: the quota keeps out those who come later.
    came = [replace(user, namespace="physics") for user in _users(10, created=NOW)]
    planned = _plan_hubs(
        planner, _quota(pods=12, namespace="physics"), bookings=both[:1], pods=came
    )
    assert _number(planned) == 2
    assert planned.gauges["headroom_quota_cut"]["default",] == 18
    # Of two quotas that leave as much the first by name is told.
    tied = [_quota(name, pods=12, namespace="physics") for name in ("team", "later")]
    planned = _plan_hubs(planner, *tied, bookings=both)
    (scale,) = (action for action in planned.actions if isinstance(action, ScaleSet))
    assert "ResourceQuota later of" in scale.why
    planned = _plan_hubs(planner, _quota(pods=12, namespace="physics"), bookings=both)
    (scale,) = (action for action in planned.actions if isinstance(action, ScaleSet))
    assert "ResourceQuota team of namespace physics lets in: it allows 12 pods" in scale.why
    # One that counts no user keeps nobody out.
    others = {"scopeName": "PriorityClass", "operator": "In", "values": ["batch"]}
    of_others = _quota(
        scopes={"scopeSelector": {"matchExpressions": [others]}}, pods=1, namespace="physics"
    )
    assert _number(_plan_hubs(planner, of_others, bookings=both)) == 60
    # Another team's quota is nobody's affair, and a quota of the release's own has its own rule.
    for namespace in ("team", "elsewhere"):
        other = _quota(pods=0, namespace=namespace)
        assert _number(_plan_hubs(planner, other, bookings=both)) == 60


def test_who_is_there_takes_of_that_quota_and_the_smallest_user_says_how_many_more_fit() -> None:
    planner = _planner(NONE, events={}, values=HUBS)
    there = [replace(user, namespace="physics") for user in _users(4)]
    quota = _quota(pods=12, requests_cpu="1", namespace="physics")
    booked = (_booking("physics", 30),)
    # 600 of 1000 millicores are left, a user takes 100.
    assert _number(_plan_hubs(planner, quota, bookings=booked, pods=there)) == 6
    large = [
        replace(user, spec=PodSpec(requests=(("cpu", 200), ("memory", 128 * MIB))))
        for user in there
    ]
    assert _number(_plan_hubs(planner, quota, bookings=booked, pods=large)) == 2
    for pods in (4, 3):
        full = _quota(pods=pods, namespace="physics")
        assert _number(_plan_hubs(planner, full, bookings=booked, pods=there)) == 0


def test_what_is_learned_is_bounded_by_the_quotas_of_all_hubs_together() -> None:
    learns = {"name": "default", "replicas": 40, "learn": {"min": 0, "max": 200, "timeZone": "UTC"}}
    planner = _planner(learns, values=HUBS)
    quotas = [_quota(pods=12, namespace="physics"), _quota(pods=10, namespace="biology")]
    assert _number(_plan_hubs(planner, quotas[0])) == 40
    assert _number(_plan_hubs(planner, *quotas)) == 22
    # Where they let in just as many, they are no reason.
    enough = [_quota(pods=20, namespace=namespace) for namespace in ("physics", "biology")]
    planned = _plan_hubs(planner, *enough)
    (scale,) = (action for action in planned.actions if isinstance(action, ScaleSet))
    assert (scale.replicas, "no more people" in scale.why) == (40, False)


def test_what_quotas_of_hubs_leave_is_told_with_the_tightest_and_what_to_ask_for() -> None:
    planner = _planner(NONE, events={}, values=HUBS)
    both = (_booking("physics", 30), _booking("biology", 30))
    quotas = [_quota(pods=12, namespace="physics"), _quota(pods=10, namespace="biology")]
    there = [replace(user, namespace="biology") for user in _users(4)]
    told = []
    for steady in (1000.0, 1010.0, 4500.0, 4610.0):
        planned = _plan_hubs(planner, *quotas, bookings=both, pods=there, steady=steady)
        assert _number(planned) == 18
        told.append(_told(planned))
    # Once an hour.
    assert [len(messages) for messages in told] == [1, 0, 0, 1]
    assert told[0][0].startswith("18 of 60 placeholders of set default (event lecture at")
    assert told[0][0].endswith(
        "), no more than people whom ResourceQuota team of namespace biology lets in: it allows 10"
        " pods; for all people ask for 34."
    )
    # What it asks for is enough.
    enough = [_quota(pods=30, namespace="physics"), _quota(pods=34, namespace="biology")]
    planned = _plan_hubs(_planner(NONE, events={}, values=HUBS), *enough, bookings=both, pods=there)
    assert _number(planned) == 60
    assert _told(planned) == []


def test_what_quotas_of_all_hubs_leave_of_what_is_learned_is_told() -> None:
    learns = {"name": "default", "replicas": 40, "learn": {"min": 0, "max": 200, "timeZone": "UTC"}}
    quotas = [_quota(pods=12, namespace="physics"), _quota(pods=10, namespace="biology")]
    (message,) = _told(_plan_hubs(_planner(learns, values=HUBS), *quotas))
    assert message == (
        "22 of 40 placeholders of set default, no more than people whom ResourceQuotas of 2"
        " namespaces let in: the tightest, ResourceQuota team of namespace biology, allows 10"
        " pods; for all people ask for 28."
    )
    quotas[1] = _quota(pods=28, namespace="biology")
    planned = _plan_hubs(_planner(learns, values=HUBS), *quotas)
    assert _number(planned) == 40
    assert _told(planned) == []


def test_what_the_releases_own_quota_leaves_of_what_is_learned_has_one_reason() -> None:
    learns = {"name": "default", "replicas": 40, "learn": {"min": 0, "max": 200, "timeZone": "UTC"}}
    (message,) = _told(_plan(_planner(learns), _quota(pods=20)))
    assert message == (
        "0 of 40 placeholders of set default, so that nobody is refused for them: ResourceQuota"
        " team allows 20 pods, others take 0, and 40 people may come; for all placeholders ask for"
        " 80."
    )


def test_both_reasons_are_told_where_quotas_here_and_of_hubs_cut() -> None:
    planner = _planner(NONE, events={}, values=HUBS)
    quotas = [_quota("here", pods=25), _quota(pods=12, namespace="physics")]
    (message,) = _told(_plan_hubs(planner, *quotas, bookings=(_booking("physics", 30),)))
    assert message.startswith("5 of 30 placeholders")
    assert "ResourceQuota here allows 25 pods" in message
    assert "; and no more than people whom ResourceQuota team of namespace physics" in message


@pytest.mark.parametrize(
    ("scopes", "number"),
    [
        ({"scopes": ["BestEffort"]}, 30),
        ({"scopes": ["NotBestEffort"]}, 0),
        ({"scopes": ["Terminating"]}, 30),
        ({"scopes": ["NotTerminating"]}, 0),
        ({"scopes": ["CrossNamespacePodAffinity"]}, 30),
        ({"scopes": ["SomethingNew"]}, 30),
        ({"scopeSelector": [("PriorityClass", "In", ["users"])]}, 30),
        ({"scopeSelector": [("PriorityClass", "NotIn", [CLASS])]}, 30),
        ({"scopeSelector": [("PriorityClass", "DoesNotExist", [])]}, 30),
        ({"scopeSelector": [("PriorityClass", "Exists", [])]}, 0),
        # Placeholders' own: nobody else needs it.
        ({"scopeSelector": [("PriorityClass", "In", [CLASS])]}, 20),
        ({"scopeSelector": [("PriorityClass", "In", [CLASS, "users"])]}, 0),
    ],
)
def test_a_quota_counts_by_its_scopes(scopes: dict[str, Any], number: int) -> None:
    if "scopeSelector" in scopes:
        expressions = [
            {"scopeName": name, "operator": operator, "values": values}
            for name, operator, values in scopes["scopeSelector"]
        ]
        scopes = {"scopeSelector": {"matchExpressions": expressions}}
    planned = _plan(_planner(NONE, events=BOOKED), _quota(scopes=scopes, pods=20), replicas=1)
    assert _number(planned) == number


def test_a_limit_ranges_defaults_count() -> None:
    body = {
        "metadata": {"name": "limits", "namespace": NAMESPACE},
        "spec": {
            "limits": [
                {"type": "Container", "default": {"memory": "1Gi"}},
                {"type": "Pod", "max": {"memory": "64Gi"}},
            ]
        },
    }
    planner = _planner(NONE, events=BOOKED)
    planned = _plan(
        planner, _quota(limits_memory="40Gi"), defaults=read_container_defaults(body), replicas=1
    )
    assert _number(planned) == 10


def test_devices_of_a_set_count() -> None:
    gpu = {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}}
    quota = read_quota(
        {
            "metadata": {"name": "gpus", "namespace": NAMESPACE},
            "spec": {"hard": {"requests.nvidia.com/gpu": "24"}},
        }
    )
    planner = _planner({"name": "default", "replicas": 8, "resources": gpu})
    assert _number(_plan(planner, quota, resources=gpu, replicas=8), 8) == 4


def test_people_who_are_larger_than_placeholders_need_more() -> None:
    spec = PodSpec(requests=(("cpu", 1000), ("memory", 1024 * MIB)))
    limits = (("memory", 2048 * MIB),)
    static = _planner({"name": "default", "replicas": 8})
    pods = _users(10, spec=spec, limits=limits)
    # Ten take 10 CPU, twenty may come: 0.5 are left, at 0.1 each.
    planned = _plan(static, _quota(requests_cpu="30500m"), pods=pods, replicas=8)
    assert _number(planned, 8) == 5


def test_sets_share_what_is_left() -> None:
    planner = _planner({"name": "default", "replicas": 30}, {"name": "gpu", "replicas": 10})
    planned = _plan(planner, _quota(pods=60), sets=("default", "gpu"), replicas=0)
    numbers = {
        action.name.rpartition("-")[2]: action.replicas
        for action in planned.actions
        if isinstance(action, ScaleSet)
    }
    assert numbers == {"default": 15, "gpu": 5}


def test_nothing_grows_before_quotas_are_known_but_for_a_minute_at_most() -> None:
    planner = _planner({**NONE, "replicas": 3}, events=BOOKED)
    assert _number(_plan(planner, knows_quotas=False, replicas=2), 2) == 2
    assert _number(_plan(planner, knows_quotas=False, replicas=2, steady=1059.5), 2) == 2
    assert _number(_plan(planner, knows_quotas=False, replicas=2, steady=1060.0), 2) == 33


def test_nothing_grows_before_quotas_of_hubs_are_known_but_for_a_minute_at_most() -> None:
    both = (_booking("physics", 30), _booking("biology", 30))
    quota = _quota(pods=12, namespace="physics")
    planner = _planner(NONE, events={}, values=HUBS)
    # The set has one placeholder.
    assert _number(_plan_hubs(planner, bookings=both, awaits_hub_quotas=True)) == 1
    assert _number(_plan_hubs(planner, quota, bookings=both, steady=1001.0)) == 42
    planner = _planner(NONE, events={}, values=HUBS)
    for steady, number in ((1000.0, 1), (1059.0, 1), (1061.0, 60)):
        planned = _plan_hubs(planner, bookings=both, awaits_hub_quotas=True, steady=steady)
        assert _number(planned) == number


@pytest.mark.parametrize("mode", ["silent", "forbidden", "out of reach", "ok", "elsewhere unread"])
def test_quotas_of_hubs_are_awaited_until_they_are_listed_or_refused(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    answers: dict[str, str | int] = {"forbidden": 403, "elsewhere unread": "ok"}
    server.kind("/api/v1/resourcequotas").mode = answers.get(mode, mode)
    release = ReleaseDocument(Reader(), release_document(HUBS), None, 36)
    watches = Watches(
        cast("Any", server),
        on_change=lambda: None,
        on_error=lambda _kind: None,
        clock=lambda: 0.0,
        all_namespaces=mode != "elsewhere unread",
    )
    quotas = WatchedQuotas(watches, release)
    if mode == "elsewhere unread":
        assert not quotas.awaits_hubs
        return
    assert quotas.awaits_hubs
    own, hubs = watches.caches
    for _ in range(3):
        hear(own)
        hear(hubs)
        quotas.follow()
    assert quotas.by_name == {}
    assert quotas.awaits_hubs == (mode in ("silent", "out of reach"))
    # Only a refusal is told, and once.
    said = [record for record in caplog.records if "quotas of hubs'" in record.message]
    assert len(said) == (mode == "forbidden")
    if mode == "forbidden":
        # A server that is away for a while says nothing of rights. Then the right comes, and goes.
        times_told = []
        for answer in ("out of reach", 403, "ok", 403):
            server.kind("/api/v1/resourcequotas").mode = answer
            hear(hubs)
            quotas.follow()
            said = [record for record in caplog.records if "quotas of hubs'" in record.message]
            times_told.append(len(said))
        assert times_told == [1, 1, 1, 2]


@given(
    hard=st.tuples(st.integers(0, 120), st.integers(0, 12_000)),
    others=st.integers(0, 40),
    replicas=st.integers(0, 60),
    people=st.integers(1, 60),
    present=st.integers(0, 60),
)
def test_whoever_is_foreseen_is_never_refused(
    hard: tuple[int, int], others: int, replicas: int, people: int, present: int
) -> None:
    pods, cpu = hard
    booked = {"booked": [{**BOOKED["booked"][0], "people": people}]}
    planner = _planner({"name": "default", "replicas": replicas}, events=booked)
    there = [*_users(others), *_placeholders(present)]
    planned = _plan(
        planner, _quota(pods=pods, requests_cpu=f"{cpu}m"), pods=there, replicas=present
    )
    number = _number(planned, present)
    assert number <= replicas + people
    if number:
        come = max(AT_ONCE, people)
        assert others + come + number <= pods
        assert 100 * (others + come + number) <= cpu
