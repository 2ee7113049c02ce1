"""Nobody fares worse with Roost: drawn cases in the scheduler's model; and the judge notices when a
mend is undone.
"""

import copy
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from roost.controllers.contract.snapshot import Moment
from roost.controllers.headroom import plan as headroom
from roost.controllers.image_gate import plan as gate
from roost.controllers.image_gate import waiting_users as waiting
from roost_core.placement.lease_state import LeaseObserver
from tests.builders import RELEASE
from tests.judge.__main__ import main
from tests.judge.cases import (
    BASE,
    BESIDE,
    NAMESPACE,
    OTHER,
    OTHER_HUBS,
    SERVED,
    Case,
    Fault,
    Foreseen,
    Other,
    Outage,
    Pool,
    Profile,
    Trouble,
    TroubleKind,
    Writing,
    booking,
    burst,
    draw,
    draw_two,
)
from tests.judge.hubs import read_hub
from tests.judge.roost_here import Release
from tests.judge.verdicts import try_case
from webhook.rules import failed_pulls as failed_pulls_rule
from webhook.rules import join_and_avoid, requests, require_images
from webhook.watching import device_classes, failed_pulls, pod_reader
from webhook.watching.failed_pulls import FailedPulls
from webhook.watching.pull_evidence import PullEvidence

pytestmark = pytest.mark.slow
CASES, ODD_CASES, TWO_CASES, HUB_CASES, CHUNK = 2000, 200, 100, 20, 50
HUBS = Path(__file__).parents[2] / "data" / "public-hubs"


def verdicts(cases: Iterable[Case], did: Counter[str] | None = None) -> Iterator[str]:
    """Who fared worse because of Roost, and the case, whose number `python -m tests.judge --seed`
    plays again.

    did: counts what Roost did.
    """
    for case in cases:
        _, with_roost, victims = try_case(case)
        if did is not None:
            did += with_roost.did
        for victim in victims:
            if victim.is_harm:
                yield f"{case.name}: {victim}"


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_nobody_fares_worse(first: int) -> None:
    assert list(verdicts(map(draw, range(first, first + CHUNK)))) == []


@pytest.mark.parametrize("first", range(0, ODD_CASES, CHUNK))
def test_nobody_fares_worse_under_odd_values(first: int) -> None:
    """These are `--odd`."""
    assert list(verdicts(draw(seed, is_odd=True) for seed in range(first, first + CHUNK))) == []


@pytest.mark.parametrize("first", range(0, TWO_CASES, CHUNK))
def test_nobody_of_two_hubs_with_a_release_each_fares_worse(first: int) -> None:
    """These are `--two`."""
    assert list(verdicts(draw_two(seed) for seed in range(first, first + CHUNK))) == []


def test_both_of_two_releases_place_users_and_keep_placeholders() -> None:
    case = next(case for case in map(draw_two, range(99)) if case.beside and case.beside.replicas)
    world = try_case(case).with_roost
    for release, namespace in ((RELEASE, NAMESPACE), (BESIDE, BESIDE)):
        schedulers = {
            pod.scheduler_name
            for key, pod in world.pods.items()
            if pod.namespace == namespace and world.fates[key].kind.startswith("plain")
        }
        assert schedulers == {f"{release}.{namespace}.user"}
    assert any(
        fate.is_own and key.startswith(f"{BESIDE}/{BESIDE}-roost-placeholder")
        for key, fate in world.fates.items()
    )


def test_no_release_is_blamed_for_what_only_the_others_users_saw() -> None:
    """Pulls of an image fail on a node, and users of the other hub alone have been there. With
    `sharedPools`, each release watches the users of both.
    """
    case = draw_two(900123)
    assert list(verdicts([case])) == []
    assert list(verdicts([replace(case, is_shared=True)])) == []


@pytest.mark.parametrize("hub", sorted(HUBS.glob("*.yaml")), ids=lambda hub: hub.stem)
def test_nobody_fares_worse_under_what_an_import_makes_of_hubs_values(hub: Path) -> None:
    read, did = read_hub(hub.read_text(encoding="utf-8")), Counter[str]()
    assert list(verdicts((draw(seed, read) for seed in range(HUB_CASES)), did)) == []
    assert did["placed"]
    assert did["gated"] + did["warm"] + did["builds"], "nothing of Roost's was played"


def test_a_profile_may_name_a_node_that_is_not_there() -> None:
    pinned = {"extra_pod_config": {"nodeName": "n1"}}
    profiles = [{"display_name": "A"}, {"display_name": "B", "kubespawner_override": pinned}]
    singleuser = {"image": {"name": "a/b", "tag": "v1"}, "profileList": profiles}
    hub = json.dumps({"singleuser": singleuser})
    assert list(verdicts(draw(seed, read_hub(hub)) for seed in range(5))) == []


# The only node that holds the image is full; of two that pull it, one never gets it.
FULL = Case(
    name="full-failing-pulling",
    pools=(Pool(name="users", cpu="4.1", at_first=3, holds=(BASE,), holders=1),),
    profiles=(Profile(name="plain"),),
    arrivals=burst("plain", 3),
    others=(Other(name="team-0", kind="team", cpu=4.0, node="users-0"),),
    pull_seconds=70.0,
    failing_pulls=frozenset({(BASE, "users-1")}),
    is_imported=True,
)
# There another team's pod would have to go for a user, which takes a minute.
LONG_GRACE = replace(
    FULL,
    name="long-grace",
    pools=(replace(FULL.pools[0], at_first=2),),
    others=(
        Other(
            name="team-0",
            kind="team",
            cpu=4.0,
            node="users-0",
            priority_class="spare",
            grace_seconds=60,
        ),
    ),
    priorities=(("spare", -3, False),),
    pull_seconds=90.0,
    failing_pulls=frozenset(),
)
CLOCK = replace(
    LONG_GRACE,
    name="clock",
    others=FULL.others,
    priorities=(),
    troubles=(Trouble(0.0, TroubleKind.CLOCK, target="-60"),),
)


# No puller brings the image, and on the oldest node its pull never ends, nor fails.
HANGS = Case(
    name="hangs",
    pools=(Pool(name="users", cpu="8", at_first=2),),
    profiles=(Profile(name="plain"), Profile(name="binder", image=OTHER, cpu=0.5, is_listed=False)),
    arrivals=burst("binder", 5, during=225.0),
    slow_pulls=frozenset({(OTHER, "users-0", math.inf)}),
)


FAILS = replace(
    HANGS,
    name="fails",
    arrivals=burst("binder", 5, during=30.0),
    slow_pulls=frozenset(),
    failing_pulls=frozenset({(OTHER, "users-0")}),
)


# One node holds the image. One user's kubelet asks the registry for it, which is down.
OUTAGE = Case(
    name="outage",
    pools=(Pool(name="users", cpu="8", at_first=3, holds=(OTHER,), holders=1),),
    profiles=(
        Profile(name="plain"),
        Profile(name="asks", image=OTHER, cpu=0.5, pulls_always=True, is_listed=False),
        Profile(name="binder", image=OTHER, cpu=0.5, is_listed=False),
    ),
    arrivals=(*burst("asks", 1), *burst("binder", 4, at=5.0, during=20.0)),
    outages=(Outage(at_seconds=-5.0, seconds=240.0, image=OTHER),),
)
# The same of a wrong pull secret of one tenant's.
SECRET = replace(
    OUTAGE,
    name="wrong-secret",
    profiles=(
        OUTAGE.profiles[0],
        replace(OUTAGE.profiles[1], pull_secret="theirs"),
        OUTAGE.profiles[2],
    ),
    outages=(OUTAGE.outages[0]._replace(secret="theirs"),),
)


# Placeholders stand on the one node without a failed pull, and the values have users avoid them.
AVOIDS = replace(draw(721085, is_odd=True), name="avoids", foreseen=None)


# As many as the quota allows are booked by the operator's ConfigMap, and twice as many by a hub's.
BOOKED = Case(
    name="booked",
    pools=(Pool(name="users", cpu="16", at_first=2, holds=(BASE,)),),
    profiles=(
        Profile(name="plain", cpu=0.5, namespace_labels=SERVED),
        Profile(name="physics", cpu=0.5, namespace=OTHER_HUBS[0], namespace_labels=SERVED),
    ),
    arrivals=(*burst("plain", 15), *burst("physics", 5)),
    quotas=tuple(
        {"metadata": {"name": "people", "namespace": name}, "spec": {"hard": {"pods": str(pods)}}}
        for name, pods in ((NAMESPACE, 20), (OTHER_HUBS[0], 5))
    ),
    foreseen=Foreseen(by_config_maps=True),
    writings=(
        Writing(-8.0, NAMESPACE, json.dumps([booking(20)])),
        Writing(-8.0, OTHER_HUBS[0], json.dumps([booking(40)])),
    ),
)


# Another team's pod fills the node, and a build that requests anything could have it deleted.
BUILDS = replace(
    FULL,
    name="builds",
    pools=(Pool(name="users", at_first=1),),
    arrivals=(),
    others=(Other(name="team-0", kind="team", cpu=4.0, node="users-0", priority_class="spare"),),
    priorities=(("spare", -3, False),),
    builds=(2.0,),
)


def test_labels_of_nodes_stay_as_they_were_while_nobody_leads() -> None:
    assert list(verdicts([draw(734918)])) == []


def test_the_written_cases_have_no_victim() -> None:
    written = [FULL, LONG_GRACE, CLOCK, HANGS, FAILS, AVOIDS, OUTAGE, SECRET, BUILDS, BOOKED]
    assert list(verdicts(written)) == []


def test_the_command_counts_no_exception_that_the_promises_tell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Placeholders stood where the only good room was."""
    monkeypatch.setattr("sys.argv", ["judge", "--two", "--seed", "9700416"])
    assert main() == 0
    said = capsys.readouterr().out
    assert "told: plain again: re-spawned" in said
    assert "0 of 1 cases are worse" in said


@pytest.mark.parametrize("hub", [NAMESPACE, OTHER_HUBS[0]])
def test_whoever_books_by_a_config_map_gets_placeholders(hub: str) -> None:
    """Else the draws of `writings` would try nothing."""
    writings = (Writing(-8.0, hub, json.dumps([booking(9)])),)
    case = replace(BOOKED, quotas=(), arrivals=(), writings=writings)
    placeholders = {
        key
        for key, fate in try_case(case).with_roost.fates.items()
        if fate.is_own and "placeholder" in key
    }
    assert len(placeholders) == 9


def test_draws_book_by_config_maps_of_the_release_and_of_hubs() -> None:
    written = [
        (writing.namespace, writing.text) for seed in range(200) for writing in draw(seed).writings
    ]
    for hub in (NAMESPACE, *OTHER_HUBS):
        texts = [text for namespace, text in written if namespace == hub]
        assert "" in texts
        assert any(text.endswith("]") for text in texts)


def waits_by_the_clusters_clock(
    pods: Any, before: Any, now: Moment, at_most: float
) -> dict[str, float]:
    del before, at_most
    told = [pod for pod in pods if pod.unschedulable_since is not None]
    return {pod.uid: now.steady - (now.wall - pod.unschedulable_since) for pod in told}


def changed(module: Any, name: str, change: Callable[..., Any]) -> tuple[Any, str, Any]:
    """The module's function, called by `change`."""
    real = getattr(module, name)
    return module, name, wraps(real)(lambda *given, **named: change(real, *given, **named))


def pulls_that_never_fail(real: Any, pod: Any, pod_class: str) -> Any:
    placed = real(pod, pod_class)
    return placed and placed._replace(images=(*placed.images, *placed.failing), failing=())


def unguarded(real: Any, case: Any, weights: Any, *, towards: bool) -> Any:
    return real(case._replace(facts=replace(case.facts, quotas={})), weights, towards=towards)


def pullers_that_request(real: Any, release: Any, kind: str) -> Any:
    found = copy.deepcopy(real(release, kind))
    for body in found if kind == "DaemonSet" else ():
        for container in body["spec"]["template"]["spec"]["containers"]:
            container["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return found


def placeholders_above_users(real: Any, release: Any, kind: str) -> Any:
    found = copy.deepcopy(real(release, kind))
    for body in found if kind == "PriorityClass" and release.rules.namespace == BESIDE else ():
        body["value"] = 1000
    return found


class Undone(NamedTuple):
    mends: tuple[tuple[Any, str, Any], ...]
    what: str
    cases: Iterable[Case]


PREEMPTS = (require_images, "may_preempt", lambda _case: False)
UNDONE = {
    "quotas": Undone(
        ((headroom, "cut_by_quotas", lambda *_: {}),), "refused", map(draw, range(20))
    ),
    "quotas-of-who-books": Undone(
        ((headroom, "cut_by_quotas", lambda *_: {}),), "refused", [BOOKED]
    ),
    "may-preempt": Undone((PREEMPTS,), "deleted", [LONG_GRACE]),
    "nominated-pods-wait": Undone(
        (
            PREEMPTS,
            changed(
                waiting, "waits_at_gate", lambda real, pod: not pod.nominated_node and real(pod)
            ),
        ),
        "late",
        [LONG_GRACE],
    ),
    "spread": Undone(
        ((require_images, "_is_spread", lambda _case: False),),
        "misplaced",
        map(draw, range(40, 80)),
    ),
    "clock": Undone(((gate, "find_since", waits_by_the_clusters_clock),), "late", [CLOCK]),
    "avoids-beside-failing": Undone(
        ((join_and_avoid, "failing_nodes", lambda _case: []),), "re-spawned", [AVOIDS]
    ),
    "failed-pulls": Undone(
        (changed(pod_reader, "read_placed_pod", pulls_that_never_fail),), "re-spawned", [FAILS]
    ),
    "holders-speak": Undone(
        (
            (PullEvidence, "excuses_failure", lambda *_: False),
            (PullEvidence, "with_lacking_images", lambda _, pod: pod),
            (FailedPulls, "drop_proven", lambda *_: None),
        ),
        "re-spawned",
        [OUTAGE],
    ),
    "given-up": Undone(((failed_pulls, "WAITED_SECONDS", math.inf),), "stranded", [HANGS]),
    "failing-nodes-last": Undone(
        ((failed_pulls_rule, "MAX_NODES", 0),), "re-spawned", map(draw, range(6144, 6145))
    ),
    "opened-before-failing": Undone(
        (
            changed(
                gate,
                "plan_openings",
                lambda real, snapshot, nodes, *given, **named: real(
                    snapshot, nodes._replace(failing={}), *given, **named
                ),
            ),
            (gate, "open_beside_failing", lambda *_: {}),
        ),
        "re-spawned",
        [FULL],
    ),
    "build-requests": Undone(
        ((requests, "_why_none", lambda _case: ""),), "refused", map(draw, range(60, 70))
    ),
    "builds-pre-empt": Undone(
        ((requests, "may_preempt", lambda _case: False),), "deleted", [BUILDS]
    ),
    "puller-requests": Undone(
        (changed(Release, "of_kind", pullers_that_request),), "deleted", map(draw, range(20, 21))
    ),
    "anothers-placeholders": Undone(
        (changed(Release, "of_kind", placeholders_above_users),),
        "deleted",
        map(draw_two, range(20)),
    ),
    "claimable": Undone(
        ((device_classes, "claimable_resources", lambda _body: frozenset()),),
        "misjudged",
        map(draw, range(161, 162)),
    ),
    # By the labels that were written before nobody led.
    "claimable-unled": Undone(
        ((device_classes, "claimable_resources", lambda _body: frozenset()),),
        "misjudged",
        [replace(draw(161), fault=Fault.KILLED, fault_at_seconds=0, has_standby=False)],
    ),
    "guarded-namespaces": Undone(
        (changed(join_and_avoid, "_terms", unguarded),), "refused", map(draw, range(30, 40))
    ),
    "blind-lease": Undone(
        ((LeaseObserver, "fail", lambda *_, **__: None),), "stranded", map(draw, range(60, 70))
    ),
    "profile-not-served": Undone(
        ((LeaseObserver, "_is_outdated", lambda *_: False),), "stranded", map(draw, range(40, 50))
    ),
}


@pytest.mark.parametrize("name", UNDONE)
def test_a_mend_that_is_undone_has_victims(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mends, what, cases = UNDONE[name]
    for mend in mends:
        monkeypatch.setattr(*mend)
    assert any(f": {what}:" in verdict for verdict in verdicts(cases))
