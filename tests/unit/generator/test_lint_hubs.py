"""`roost validate` of a central release and of the hubs that it serves."""

from __future__ import annotations

import pytest

from generator.values.release import Release
from tests.unit.generator.linted import assert_refused, assert_warned, said

HUB = "hubs: {central: {release: roost, namespace: roost-system}}\n"
CENTRAL = "hubs: {serve: true}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hubs: {central: {release: roost}}", 'hubs.central.namespace: found ""'),
        ("hubs: {central: {namespace: roost-system}}", 'hubs.central.release: found ""'),
        (HUB.replace("{central", "{serve: true, central"), "a hub has no webhook to serve others with"),
        (HUB + "admission: {mode: none}", "the central webhook would get no rules of this hub"),
        (
            HUB + "podClasses: {user: {match: {namespaceSelector: {}}}}",
            "podClasses.user.match.namespaceSelector: a hub of a central release has the pods of its own namespace",
        ),
        (CENTRAL + "admission: {mode: none}", "admission policies hold the rules of one hub"),
        (CENTRAL + "clusterResources: false", "API servers would send no pod of another namespace"),
        (CENTRAL + "podClasses: {hubs: {match: {labels: {a: b}}}}", "podClasses.hubs: the webhook's entry"),
    ],
)
def test_what_does_not_work_is_refused(text: str, reason: str) -> None:
    assert_refused(text, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HUB + "sharedPools: {namespaceSelector: {}}", "requires no label"),
        (HUB + "recorder: {enabled: true}", "each recorder records the whole cluster"),
        (
            CENTRAL + "placeholderMover: {evictionsPerMinute: 60}",
            "evictionsPerMinute: 60, but hubs.evictionsPerMinute limits this release and all its hubs together to 20",
        ),
        (HUB + "scheduler: {profiles: {user: {strategy: packTo}}}", "pods get the central release's scheduler"),
    ],
)
def test_what_surprises_is_warned_of(text: str, reason: str) -> None:
    assert_warned(text, reason)


def test_a_total_without_hubs_is_only_a_hint() -> None:
    (line,) = (line for line in said("hubs: {evictionsPerMinute: 9}").splitlines() if "evictionsPerMinute" in line)
    assert "hint" in line
    assert "without hubs.serve it does nothing" in line
    assert "evictionsPerMinute" not in said("hubs: {serve: true, evictionsPerMinute: 9}")


def test_a_release_is_not_its_own_hub() -> None:
    assert "names this very release" in said(HUB, Release("roost", "roost-system"))


@pytest.mark.parametrize(
    "text", [HUB, CENTRAL, HUB + "sharedPools: {namespaceSelector: {matchLabels: {hub.jupyter.org/pool: users}}}"]
)
def test_plain_values_of_either_kind_are_fine(text: str) -> None:
    assert not [line for line in said(text).splitlines() if "hint" not in line]


def test_a_namespaces_admin_needs_no_certificate_of_their_own() -> None:
    assert "certificates" not in said(HUB + "clusterResources: false")


SERVED = "hubs: {central: {release: roost, namespace: roost-system, controllers: true}}\n"


def test_controllers_of_a_central_release_need_that_release_and_fetch_no_calendars() -> None:
    assert_refused("hubs: {central: {controllers: true}}", "true without hubs.central.release")
    assert_refused(SERVED + "events: {calendarUrl: 'https://a.example/b.ics'}", "fetch no calendars for hubs")
    assert not [line for line in said(SERVED).splitlines() if "hint" not in line]
