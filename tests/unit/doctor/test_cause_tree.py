"""One cause is told once, with what follows from it below."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.commands.doctor import _as_json, _as_text, _exit_code
from roost.doctor.cause_tree import group_by_cause
from roost.doctor.checks import INSTALLED, run_checks
from roost.doctor.conditions import Condition, State, component_of, conditions
from roost.doctor.evidence import path_of
from roost.doctor.findings import CheckOutcome, Finding, error, warning
from roost_core.kube.client import ApiError
from tests.unit.doctor.whole_cluster import APPS, ENDPOINTS, LEASES, QUOTAS, Cluster, found

_CONDITIONS = st.frozensets(
    st.builds(Condition, st.sampled_from(State), st.sampled_from(["", "webhook", "scheduler"])),
    max_size=3,
)
_FINDINGS = st.builds(
    Finding,
    st.sampled_from(["error", "warning", "unknown"]),
    st.text("ab", max_size=2),
    st.just("Mend it."),
    _CONDITIONS,
    _CONDITIONS,
)
_OUTCOMES = st.lists(
    st.builds(
        CheckOutcome,
        st.sampled_from(["programs", "leaders", "admission"]),
        st.just("things"),
        st.lists(_FINDINGS, max_size=4).map(tuple),
    ),
    max_size=5,
)


@given(_OUTCOMES)
def test_each_finding_stands_in_the_tree_once_whatever_brings_about_what(
    outcomes: list[CheckOutcome],
) -> None:
    trees = group_by_cause(outcomes)
    told = [pair for tree in trees for pair in ((tree.check, tree.finding), *tree.consequences)]
    given = [(outcome.check, finding) for outcome in outcomes for finding in outcome.findings]
    assert sorted(told, key=repr) == sorted(given, key=repr)
    # What follows from nothing is never hidden below something else.
    roots = [(tree.check, tree.finding) for tree in trees]
    assert all(pair in roots for pair in given if not pair[1].follows)


@given(_OUTCOMES)
def test_text_and_json_tell_each_finding_and_the_exit_code_counts_all(
    outcomes: list[CheckOutcome],
) -> None:
    text = _as_text(outcomes, before=False)
    for outcome in outcomes:
        for finding in outcome.findings:
            assert f"{outcome.check}: {finding.evidence}" in text
    severities = [
        finding["severity"]
        for check in json.loads(_as_json(outcomes))
        for finding in check["findings"]
    ]
    assert _exit_code(outcomes, before=True) == int("error" in severities)


def test_a_cause_is_as_urgent_as_what_follows_from_it() -> None:
    outcomes = [
        CheckOutcome("switches", "", (error("a", "Switch."),)),
        CheckOutcome(
            "leaders", "", (warning("b", "Look.", conditions(State.UNLED, "controllers")),)
        ),
        CheckOutcome(
            "nodes", "", (warning("c", "No.", follows=conditions(State.UNLED, "controllers")),)
        ),
    ]
    *lines, last = _as_text(outcomes, before=False).splitlines()
    assert lines[:3] == ["warning  leaders: b", "         Fix: Look.", "         So also nodes: c"]
    assert last == "Users are affected. First: leaders: Look."


def _trees(cluster: Cluster) -> list[tuple[str, list[str]]]:
    """The check of each cause, and the checks of what follows from it."""
    return [
        (tree.check, [check for check, _ in tree.consequences])
        for tree in group_by_cause(run_checks(cluster.install, INSTALLED))
    ]


def _full() -> ApiError:
    used = "requested: pods=1, used: pods=20, limited: pods=20"
    return ApiError(403, f'403 Forbidden: pods "a" is forbidden: exceeded quota: course, {used}')


def test_a_full_quota_is_one_error_with_all_its_consequences_below() -> None:
    cluster = Cluster()
    cluster.admitted = cluster.refusal = _full()
    hard = {"metadata": {"name": "course", "namespace": "jhub"}, "spec": {"hard": {"pods": "20"}}}
    cluster.lists[QUOTAS] = [hard]
    for body in cluster.install.of_kind("Deployment"):
        path = f"{APPS}/deployments/{body['metadata']['name']}"
        cluster.objects[path]["status"]["readyReplicas"] = 0
        if component_of(body) in ("scheduler", "controllers"):
            cluster.objects[f"{LEASES}/{body['metadata']['name']}"]["spec"] = {}
    cluster.lists[ENDPOINTS] = []
    ((check, below),) = _trees(cluster)
    assert check == "security"
    assert sorted({*below}) == ["admission", "leaders", "programs", "requests", "webhook"]
    text = _as_text(run_checks(cluster.install, INSTALLED), before=False)
    assert text.count("Fix:") == 1
    assert "Users are affected. First: security: Raise the namespace's ResourceQuota" in text
    assert "account that may" not in text


def test_pods_that_a_quota_refuses_with_and_without_roost_are_no_question_of_rights() -> None:
    cluster = Cluster()
    cluster.admitted = cluster.refusal = _full()
    outcomes = run_checks(cluster.install, INSTALLED)
    said = found(outcomes, "admission")
    assert [finding.severity for finding in said] == ["error", "error"]
    assert all("is refused, with Roost and without it" in finding.evidence for finding in said)
    assert all(one.is_felt for one in said)
    assert "describe resourcequota course" in said[0].fix


@pytest.mark.parametrize(
    ("component", "below"),
    [("webhook", ["webhook"]), ("scheduler", ["leaders"]), ("controllers", ["leaders"])],
)
def test_a_program_without_pods_is_told_with_what_it_did_for_others(
    component: str, below: list[str]
) -> None:
    cluster = Cluster()
    name = f"hub-roost-{component}"
    cluster.objects[f"{APPS}/deployments/{name}"]["status"]["readyReplicas"] = 0
    if component == "webhook":
        cluster.lists[ENDPOINTS] = []
    else:
        cluster.objects[f"{LEASES}/{name}"]["spec"] = {}
    assert _trees(cluster) == [("programs", below)]


def test_what_is_wrong_besides_stands_beside() -> None:
    cluster = Cluster()
    cluster.objects[f"{APPS}/deployments/hub-roost-webhook"]["status"]["readyReplicas"] = 0
    cluster.lists[ENDPOINTS] = []
    cluster.objects[f"{LEASES}/hub-roost-scheduler"]["spec"] = {}
    assert _trees(cluster) == [("programs", ["webhook"]), ("leaders", [])]


_COMPONENTS = ["webhook", "scheduler", "controllers"]


@given(
    kind=st.sampled_from(
        ["PodDisruptionBudget", "ValidatingAdmissionPolicy", "Deployment", "ServiceAccount"]
    ),
    component=st.sampled_from(_COMPONENTS),
    is_missing=st.booleans(),
)
@settings(max_examples=24, deadline=None)
def test_only_what_a_program_needs_to_start_is_the_cause_of_its_being_down(
    *, kind: str, component: str, is_missing: bool
) -> None:
    cluster = Cluster()
    deployment = f"{APPS}/deployments/hub-roost-{component}"
    cluster.objects[deployment]["status"]["readyReplicas"] = 0
    bodies = [body for body in cluster.install.of_kind(kind) if component_of(body) == component]
    for body in bodies:
        if is_missing and kind != "Deployment":
            del cluster.objects[path_of(body)]
        else:
            cluster.objects[path_of(body)].setdefault("spec", {})["roost"] = "?"
            cluster.objects[path_of(body)]["metadata"]["labels"] = {}
    outcomes = run_checks(cluster.install, INSTALLED)
    trees = group_by_cause(outcomes)
    (above,) = [
        tree
        for tree in trees
        if "programs" in (tree.check, *(check for check, _ in tree.consequences))
    ]
    is_needed = bool(bodies) and kind in ("Deployment", "ServiceAccount")
    assert above.check == ("objects" if is_needed else "programs")
    # Whatever it follows from, what to do about an error is told.
    text = _as_text(outcomes, before=False)
    for outcome in outcomes:
        for finding in outcome.findings:
            assert finding.severity != "error" or finding.fix in text
