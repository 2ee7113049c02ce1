"""What one replica wires together, without listeners: what it counts, and which policy it takes for
its own.
"""

import json
from pathlib import Path
from unittest import mock

import pytest

from roost_core.placement.lease_state import LeaseState
from roost_core.release.release_settings import SCHEDULER
from tests.builders import Desk, policy_document, user_pod
from webhook import rules
from webhook.admission import Decision, ReviewResult
from webhook.facts.facts import Facts
from webhook.main import _Replica
from webhook.patch import Annotate
from webhook.rules.contract import Rule
from webhook.watching.keeper import FactsKeeper
from webhook.webhook_options import WebhookOptions


def replica(folder: Path, release: str = "hub", namespace: str = "jhub") -> _Replica:
    file = folder / "release.json"
    file.write_text(json.dumps(policy_document()))
    options = WebhookOptions(
        release_file=file,
        certificate_folder=folder,
        release=release,
        namespace=namespace,
        no_cluster=True,
    )
    return _Replica(options)


def test_dry_runs_are_not_counted(tmp_path: Path) -> None:
    running = replica(tmp_path)
    for is_dry_run in (True, False):
        running._metrics.count_review(
            Decision(ReviewResult.PATCHED, "user", degraded="no-holder"), is_dry_run, 0.001
        )
    sample = running._metrics.registry.get_sample_value
    assert sample("roost_webhook_reviews_total", {"class": "user", "result": "patched"}) == 1
    assert (
        sample("roost_webhook_gate_degradations_total", {"class": "user", "reason": "no-holder"})
        == 1
    )


@pytest.mark.parametrize(("release", "namespace"), [("other", "jhub"), ("hub", "other")])
def test_the_policy_of_another_release_is_refused(
    tmp_path: Path, release: str, namespace: str
) -> None:
    running = replica(tmp_path, release, namespace)
    running._release.poll()
    passed, detail = running._release.readiness()
    assert not passed
    for text in ("'hub'", "'jhub'", f"--release={release}", f"--namespace={namespace}"):
        assert text in detail


@pytest.mark.parametrize(("state", "away"), [(LeaseState.HELD, 0), (LeaseState.OUTDATED, 1)])
def test_a_part_is_shown_away_as_soon_as_reviews_take_it_for_away(
    state: LeaseState, away: int, tmp_path: Path
) -> None:
    running = replica(tmp_path)
    keeper = FactsKeeper(mock.Mock(), running._metrics)
    keeper.facts = Facts(leases={SCHEDULER: state})
    running._facts = keeper
    page = running._metrics_text().decode()
    assert f'roost_webhook_part_away{{part="scheduler"}} {away}.0' in page


def test_a_key_of_a_class_that_no_rule_reads_is_refused_until_it_is_gone(tmp_path: Path) -> None:
    running = replica(tmp_path)
    file = tmp_path / "release.json"
    file.write_text(json.dumps(policy_document(podClasses={"user": {"profil": "user"}})))
    running._release.poll()
    passed, detail = running._release.readiness()
    assert not passed
    assert "no rule reads podClasses.user.profil" in detail
    file.write_text(json.dumps(policy_document()))
    running._release.poll()
    assert running._release.readiness().passed


def test_a_rule_with_a_key_needs_its_place_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Rule(
        lambda case: [Annotate("example.org/tier", str(case.pod_class.more["tier"]))],
        lambda _settings, pod_class: "tier" in pod_class.more,
        keys=("tier",),
    )
    monkeypatch.setattr(rules, "RULES", (*rules.RULES, rule))
    running = replica(tmp_path)
    (tmp_path / "release.json").write_text(
        json.dumps(policy_document(podClasses={"user": {"tier": "gold"}}))
    )
    running._release.poll()
    assert running._release.readiness().passed
    placed = Desk(running._release.settings).place(user_pod())
    assert placed["metadata"]["annotations"]["example.org/tier"] == "gold"
