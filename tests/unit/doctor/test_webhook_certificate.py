"""`roost doctor` names a certificate of the webhook that the API server can't trust."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.values.release_name import Release
from roost.doctor.cause_tree import group_by_cause
from roost.doctor.checks import INSTALLED, run_checks
from roost_core.kube.client import ApiError
from roost_core.kube.pki import certificate_facts, is_trusted, make_authority, sign_leaf
from tests.unit.doctor.whole_cluster import (
    APPS,
    AUTHORITY,
    ENDPOINTS,
    HOST,
    SECRETS,
    WEBHOOK,
    Cluster,
    in_base64,
    leaf_secret,
)

SECRET = f"{SECRETS}/hub-roost-webhook-leaf"
NOW = datetime.now(UTC).timestamp()
OTHER = make_authority("somebody-else", NOW, 86400.0)
GIVEN = "webhook: {certificates: {mode: secret, secretName: mine, caBundle: AAAA}}"


def test_an_expired_certificate_is_named_with_its_date_and_whose_it_is() -> None:
    cluster = Cluster()
    cluster.objects[SECRET] = leaf_secret(-60.0)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    cluster.tells(
        "webhook",
        "error",
        "The webhook's certificate (Secret jhub/hub-roost-webhook-leaf, of roost) expired",
        day,
        fix="The controllers' leader makes it",
    )


def test_what_an_expired_certificate_brings_about_stands_below_it() -> None:
    cluster = Cluster()
    cluster.objects[SECRET] = leaf_secret(-60.0)
    cluster.objects[f"{APPS}/deployments/hub-roost-webhook"]["status"]["readyReplicas"] = 0
    cluster.lists[ENDPOINTS] = []
    cluster.admitted = {"annotations": {}}
    (tree,) = group_by_cause(run_checks(cluster.install, INSTALLED))
    assert (tree.check, "expired" in tree.finding.evidence) == ("webhook", True)
    assert {check for check, _ in tree.consequences} == {"programs", "webhook", "admission"}


def test_a_ca_bundle_of_another_ca_is_told_with_both_names() -> None:
    cluster = Cluster()
    for entry in cluster.objects[WEBHOOK]["webhooks"]:
        entry["clientConfig"]["caBundle"] = in_base64(OTHER.certificate_pem)
    cluster.tells("webhook", "error", "its caBundle is of another CA (somebody-else)", "of roost)")


@pytest.mark.parametrize(("release", "name"), [("roost", "roost"), ("hub", "hub-roost")])
def test_the_controllers_to_restart_have_the_name_that_the_release_gives_them(
    release: str, name: str
) -> None:
    cluster = Cluster(release=Release(release, "jhub", "v1.37.2"))
    cluster.objects[f"{SECRETS}/{name}-webhook-leaf"] = leaf_secret()
    for body in cluster.objects.values():
        for entry in body.get("webhooks", ()):
            entry["clientConfig"]["caBundle"] = in_base64(OTHER.certificate_pem)
    (fix,) = {
        finding.fix
        for outcome in run_checks(cluster.install, INSTALLED)
        for finding in outcome.findings
        if "another CA" in finding.evidence
    }
    assert f"rollout restart deployment/{name}-controllers`" in fix


def test_a_certificate_for_other_names_is_told() -> None:
    cluster = Cluster()
    cluster.objects[SECRET] = leaf_secret(names=["elsewhere.jhub.svc"])
    cluster.tells("webhook", "error", f"isn't for {HOST}", "(elsewhere.jhub.svc)")
    cluster.objects[SECRET] = leaf_secret(names=["*.jhub.svc"])
    assert cluster.said("webhook") == []


def test_whoever_may_not_get_secrets_is_told_nothing_of_the_certificate() -> None:
    cluster = Cluster()

    def find(path: str, /) -> object:
        if path == SECRET:
            raise ApiError(403, "GET: 403 Forbidden")
        return Cluster.find(cluster, path)

    cluster.find = find  # type: ignore[method-assign,assignment] # an account with fewer rights
    assert cluster.said("webhook") == []


def test_a_missing_secret_and_one_without_a_certificate_are_told() -> None:
    cluster = Cluster()
    del cluster.objects[SECRET]
    cluster.tells("webhook", "error", "is missing")
    cluster.objects[SECRET] = {"data": {"tls.crt": in_base64(b"nothing")}}
    cluster.tells("webhook", "error", "holds no certificate")


@pytest.mark.parametrize(("days", "is_told"), [(3, True), (20, False)])
def test_a_certificate_that_is_brought_by_hand_is_told_days_before_its_end(
    days: int, is_told: bool
) -> None:
    cluster = Cluster(GIVEN)
    authority = make_authority("mine", NOW, 90 * 86400.0)
    cluster.objects[f"{SECRETS}/mine"] = leaf_secret(days * 86400.0, authority=authority)
    bundle = in_base64(authority.certificate_pem)
    for body in (
        *cluster.install.of_kind("MutatingWebhookConfiguration"),
        cluster.objects[WEBHOOK],
    ):
        for entry in body["webhooks"]:
            entry["clientConfig"]["caBundle"] = bundle
    said = cluster.said("webhook")
    assert [finding.severity for finding in said] == ["warning"] * is_told


@given(signer=st.integers(0, 2), trusted=st.sets(st.integers(0, 2)), chained=st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_chain_is_trusted_if_its_ca_is_in_the_bundle(
    signer: int, trusted: set[int], chained: bool
) -> None:
    authorities = [make_authority(f"ca-{number}", NOW, 86400.0) for number in range(3)]
    leaf = sign_leaf(authorities[signer], [HOST], NOW, 3600.0)
    chain = leaf.certificate_pem + (authorities[signer].certificate_pem if chained else b"")
    bundle = b"".join(authorities[number].certificate_pem for number in sorted(trusted))
    assert is_trusted(chain, bundle) == (signer in trusted)
    facts = certificate_facts(chain)
    assert facts is not None
    assert (facts.issuer, facts.names) == (f"CN=ca-{signer}", (HOST,))
    assert is_trusted(b"nothing", bundle) is False


def test_a_healthy_world_stays_quiet_while_a_ca_is_replaced() -> None:
    cluster = Cluster()
    for entry in cluster.objects[WEBHOOK]["webhooks"]:
        both = OTHER.certificate_pem + AUTHORITY.certificate_pem
        entry["clientConfig"]["caBundle"] = in_base64(both)
    assert cluster.said("webhook") == []
