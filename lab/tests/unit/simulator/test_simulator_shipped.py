"""The shipped policies and the studies: each says what it is, is valid, and means what its name says."""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from benchmarks.studies import policy_files, values_files
from roost_core.objects.image_references import normalise_reference
from roost_core.release.image_gate import GateMode
from roost_core.scheduler.plugins import IMAGE_LOCALITY, INTER_POD_AFFINITY, NODE_AFFINITY, NODE_RESOURCES_FIT
from roost_lab.simulator.engine.pods import image_reference
from roost_lab.simulator.setup import policy as policies
from roost_lab.simulator.setup.policy import Policy
from roost_lab.traces.archive import read_launch
from roost_lab.traces.synthetic import synthetic_attempts

NAMES = sorted(policy_files())
MOST_LAUNCHED = "ipython/ipython-in-depth/master"
HUBS_IMAGE = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"


@cache
def load_policy(name: str) -> Policy:
    """Each is read once for all tests."""
    return policies.load_policy(name, values_files(name))


def weights(policy: Policy, pod_class: str = "user") -> dict[str, int]:
    return dict(policy.profile_of(f"hub.binder.{pod_class}").scores)


def own_class(policy: Policy, name: str) -> Any:
    assert policy.webhook is not None
    return policy.webhook.classes[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_can_be_replayed(name: str) -> None:
    policy = load_policy(name)
    planners = policy.make_planners()
    assert bool(planners) is (policy.controllers is not None)


def test_z2jh_has_the_weights_of_its_chart() -> None:
    found = weights(load_policy("z2jh"))
    assert [found[name] for name in (NODE_AFFINITY, INTER_POD_AFFINITY, NODE_RESOURCES_FIT, IMAGE_LOCALITY)] == [
        14631,
        1331,
        121,
        11,
    ]
    assert "NodeResourcesBalancedAllocation" not in found
    assert not own_class(load_policy("z2jh"), "user").join


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("gate-label", GateMode.REQUIRE_LABEL),
        ("gate-taint", GateMode.STARTUP_TAINT),
        ("gate-prefer", GateMode.PREFER),
        ("attract", GateMode.REQUIRE_LABEL),
    ],
)
def test_gates_hold_for_the_images_that_are_launched_most(name: str, mode: GateMode) -> None:
    policy = load_policy(name)
    assert policy.webhook is not None
    assert policy.webhook.gate.mode is mode
    assert own_class(policy, "user").image_gate
    launched = image_reference(read_launch("GitHub", MOST_LAUNCHED, None).image)
    assert normalise_reference(launched) in policy.webhook.gate.managed_images
    assert launched in policy.pullers[0].images.values()
    assert bool(policy.startup_taints) is (mode is GateMode.STARTUP_TAINT)


def test_pullers_bring_the_images_that_made_up_launches_launch_most() -> None:
    counts = Counter(attempt.image for attempt in synthetic_attempts(1, days=3.0))
    most_launched = {image_reference(image) for image, _ in counts.most_common(5)}
    for name in NAMES:
        pulled = {image for puller in load_policy(name).pullers for image in puller.images.values()} - {HUBS_IMAGE}
        assert pulled == (most_launched if name.startswith(("gate-", "attract")) else set()), name
