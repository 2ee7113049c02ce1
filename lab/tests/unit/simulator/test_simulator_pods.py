"""Pods of a replay are what the webhook makes of them now, however many of their kind were made
before.
"""

from dataclasses import replace

import jsonpatch
import pytest

from benchmarks.studies import values_files
from generator.values.merge import SetOptions
from roost_core.objects.image_references import image_repository
from roost_core.objects.node import Node
from roost_core.objects.pod_body import read_pod_body
from roost_core.objects.pod_reader import read_pod
from roost_core.placement.labels import WARM_TARGET_ANNOTATION, pulled_label
from roost_core.placement.nodes import Nodes
from roost_lab.simulator.engine.pods import PodMaker, image_reference
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.traces.attempt import Attempt
from webhook.admission import decide
from webhook.facts.facts import Facts
from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.rules import Rulebook

# The hub's own: the policy `roost` has it pulled to all nodes.
MANAGED = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"


def test_a_gated_pod_follows_what_nodes_hold() -> None:
    policy = load_policy("roost")
    maker = PodMaker(policy, Assumptions())
    attempt = Attempt(0, 0.0, "repository", MANAGED)
    label = pulled_label(policy.release, policy.namespace, MANAGED)
    without, holding = Node("node-1"), Node("node-1", {label: "true"})
    required = []
    # Twice the same nodes, others of the same content, a change, and back.
    first = Nodes([without])
    for nodes in (first, first, Nodes([without]), Nodes([holding]), Nodes([without])):
        facts = Facts(nodes=nodes)
        made = maker.user(attempt, "jupyter-ada", 1.0, facts)
        assert made == PodMaker(policy, Assumptions()).user(attempt, "jupyter-ada", 1.0, facts)
        required.append(made.spec.required_node_terms is not None)
    assert required == [False, False, False, True, False]


def test_another_hubs_pod_is_in_its_own_namespace_and_no_webhook_of_ours_changes_it() -> None:
    policy = replace(load_policy("roost"), outsiders=frozenset({"other"}))
    maker = PodMaker(policy, Assumptions())
    label = pulled_label(policy.release, policy.namespace, MANAGED)
    facts = Facts(nodes=Nodes([Node("node-1", {label: "true"})]))
    ours = maker.user(Attempt(0, 0.0, "repository", MANAGED), "jupyter-ada", 1.0, facts)
    theirs = maker.user(
        Attempt(1, 0.0, "repository", MANAGED, hub="other"), "jupyter-eve", 1.0, facts
    )
    assert (ours.namespace, theirs.namespace) == (policy.namespace, "other")
    assert theirs.scheduler_name == "other-user-scheduler"
    assert ours.spec.required_node_terms is not None
    assert theirs.spec.required_node_terms is None
    assert (ours.spec.preferred_affinity != (), theirs.spec.preferred_affinity) == (True, ())
    # A pod of ours stays what it was.
    again = maker.user(Attempt(2, 0.0, "repository", MANAGED), "jupyter-bob", 1.0, facts)
    assert again.spec == ours.spec


def test_pods_of_a_kind_have_images_of_their_own_and_what_the_webhook_makes_of_those() -> None:
    policy = load_policy("roost")
    maker = PodMaker(policy, Assumptions())
    label = pulled_label(policy.release, policy.namespace, MANAGED)
    facts = Facts(nodes=Nodes([Node("node-1", {label: "true"})]))
    for image in ("example.org/one:1", "example.org/two:1", MANAGED, "example.org/three:1"):
        for memory_bytes in (2**28, 2**30):
            attempt = Attempt(0, 0.0, "repository", image, memory_bytes=memory_bytes)
            made = maker.user(attempt, "jupyter-ada", 1.0, facts)
            assert made == PodMaker(policy, Assumptions()).user(attempt, "jupyter-ada", 1.0, facts)
            assert made.spec.images == (image,)


@pytest.mark.parametrize("target", ["deploy", "none"])
def test_a_pods_warm_nodes_are_those_of_the_webhooks_whole_patch(target: str) -> None:
    settings = SetOptions(values=(f"scheduler.target={target}", "podClasses.user.join.user=100"))
    policy = load_policy("warm-alone", values_files("warm-alone"), settings)
    assert policy.webhook is not None
    maker = PodMaker(policy, Assumptions())
    rulebook = Rulebook(policy.webhook)
    attempt = Attempt(0, 0.0, "repository", MANAGED)
    room = {"cpu": 16_000, "memory": 2**36, "pods": 8}
    nodes = Nodes([Node(f"node-{number}", allocatable=room, created=number) for number in range(9)])
    warm = WarmFacts()
    seen, joined = set(), set()
    # In the end no node has room.
    for number in range(10):
        name = f"jupyter-{number}"
        facts = Facts(nodes=nodes, warm={"user": warm})
        made = maker.user(attempt, name, 1.0, facts)
        body = {**maker._user_body(attempt, name)}
        body["metadata"]["namespace"] = policy.namespace
        pod = read_pod_body(body, policy.namespace)
        decision = decide(pod, rulebook, facts, now=1.0)
        whole = read_pod(jsonpatch.apply_patch(body, decision.operations))
        assert (made.spec, dict(made.annotations)) == (whole.spec, dict(whole.annotations))
        seen.add(made.spec.preferred_node_terms)
        joined.add((WARM_TARGET_ANNOTATION in made.annotations, bool(made.spec.preferred_affinity)))
        users = {
            f"hub/{number}-{place}": PlacedPod("user", f"node-{number}", (MANAGED,))
            for place in range(8)
        }
        warm = warm.updated(users)
    assert len(seen) == 10
    assert joined == {(True, target == "deploy"), (False, target == "deploy")}


def test_an_images_reference_has_the_repository_in_its_name_and_the_commit_in_its_tag() -> None:
    commit = "6f1e" * 10
    named = "GitHub/owner/name"
    references = [
        image_reference(one)
        for one in (named, f"{named}@{commit}", f"{named}+1558483200", f"{named}/main")
    ]
    repositories = [image_repository(reference) for reference in references]
    assert repositories[0] == repositories[1] == repositories[2] != repositories[3]
    assert len(set(references)) == 4
    assert image_reference("Git/git@example.org:a/b") != image_reference("Git/git")
    assert (
        image_reference("example.org/course:2026+1558483200")
        == "example.org/course:2026+1558483200"
    )
