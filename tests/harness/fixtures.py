"""pytest fixtures over the harness; load with `pytest_plugins = ["tests.harness.fixtures"]`.

Owns how a test gets a cluster, and what happens where none can run: skipped with the reason, failed
in CI.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
import yaml

from generator.render.kube_scheduler import SCHEDULER_TAGS
from tests.harness.binaries import (
    MINORS,
    NEWEST_MINOR,
    OLDEST_MINOR,
    HarnessUnavailableError,
    ensure_binary,
)
from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.distribution import DistributionRegistry
from tests.harness.images import Image, read_archive
from tests.harness.names import names
from tests.harness.nodes import FakeNodes
from tests.harness.pod_network import GATEWAY, PodNetwork
from tests.harness.pods import PodKeeper
from tests.harness.real_nodes import SERVING, RealNode
from tests.harness.registry import RealRegistry
from tests.harness.scheduler import start_scheduler
from tools import image
from tools.root import ROOT

# Of pods' sandboxes, under the name that kubelets ask for.
PAUSE: Final = "registry.k8s.io/pause:3.10.1"
# `make test-minors` runs all of them, `make test` the newest and the oldest, whose programs it
# builds.
EVERY_MINOR: Final = [
    pytest.param(
        minor,
        marks=[
            pytest.mark.each_minor,
            *([] if minor in (OLDEST_MINOR, NEWEST_MINOR) else [pytest.mark.minors]),
        ],
    )
    for minor in MINORS
]


def require_binary(name: str, minor: str = NEWEST_MINOR) -> Path:
    """`ensure_binary` for tests: skips where it can't be had, fails in CI."""
    try:
        return ensure_binary(name, minor)
    except HarnessUnavailableError as error:
        give_up(error)


def require_image(target: str = image.ROOST) -> Image:
    """Roost's image, or roost-lab's, of the Dockerfile, for tests: skips where it can't be built,
    fails in CI.
    """
    if missing := image.missing_parts():
        give_up(
            HarnessUnavailableError(
                f"Roost's image can't be built here; missing: {', '.join(missing)}"
            )
        )
    return read_archive(image.build(target))


def push_roost(registry: RealRegistry) -> None:
    """Push what Roost's pods run, under the names that the values' defaults have."""
    defaults = yaml.safe_load((ROOT / "chart/values.yaml").read_text())
    version = yaml.safe_load((ROOT / "chart/Chart.yaml").read_text())["appVersion"]
    registry.push_image(f"library/roost:{version}", require_image())
    push_scheduler(registry, SCHEDULER_TAGS[NEWEST_MINOR])
    registry.push_program("pause:{}".format(defaults["placeholder"]["image"]["tag"]))


def push_scheduler(registry: RealRegistry, tag: str) -> None:
    """Push the kube-scheduler of a tag's minor."""
    program = ensure_binary("kube-scheduler", tag.removeprefix("v").rpartition(".")[0])
    registry.push(f"kube-scheduler:{tag}", files={"/usr/local/bin/kube-scheduler": program})


def give_up(error: HarnessUnavailableError) -> NoReturn:
    """Skip the test with the reason; in CI fail, since a check that silently doesn't run is worth
    nothing there.
    """
    if os.environ.get("CI"):
        pytest.fail(f"the real control plane can't run in CI: {error}", pytrace=False)
    pytest.skip(str(error))


@contextlib.contextmanager
def kubelet_cluster() -> Iterator[ControlPlane]:
    """A cluster that opens nodes as their kubelets become Ready, with Kubernetes' own scheduler."""
    # Slow kubelets of a busy machine are no dead ones.
    flags = ["--node-monitor-grace-period=120s"]
    controllers = (*CONTROLLERS, "node-lifecycle-controller")
    with or_give_up(), ControlPlane(controllers=controllers, controller_flags=flags) as cluster:
        start_scheduler(cluster)
        yield cluster


@contextlib.contextmanager
def networked_nodes(
    fill: Callable[[RealRegistry], object],
    nodes: Mapping[str, Mapping[str, str]],
    *,
    kubelet: Mapping[str, Any] | None = None,
) -> Iterator[list[RealNode]]:
    """`nodes_of_registry`, whose registry is the test's own: `fill` pushes the images."""
    with or_give_up(), RealRegistry() as registry:
        fill(registry)
        with nodes_of_registry(registry, nodes, kubelet=kubelet) as started:
            yield started


@contextlib.contextmanager
def nodes_of_registry(
    registry: RealRegistry | DistributionRegistry,
    nodes: Mapping[str, Mapping[str, str]],
    *,
    kubelet: Mapping[str, Any] | None = None,
) -> Iterator[list[RealNode]]:
    """Real nodes that answer whoever asks them, Kubernetes' own scheduler, and a network of the
    pods' own, with names.

    nodes: labels by name. kubelet: fields of KubeletConfiguration beside those.
    """
    with or_give_up(), PodNetwork() as network, network.make_cluster() as cluster:
        how: dict[str, Any] = {
            "network": network,
            "kubelet": {**SERVING, "clusterDNS": [GATEWAY], **(kubelet or {})},
        }
        with contextlib.ExitStack() as stack:
            stack.enter_context(names(network, cluster.api))
            started = [
                RealNode(cluster, name, registry, labels=labels, **how)
                for name, labels in nodes.items()
            ]
            for node in started:
                stack.enter_context(node)
            stack.enter_context(start_scheduler(cluster, leader_elect=False))
            yield started


@contextlib.contextmanager
def pause_registry() -> Iterator[RealRegistry]:
    with or_give_up(), RealRegistry() as registry:
        registry.push_program(PAUSE.partition("/")[2])
        yield registry


@contextlib.contextmanager
def or_give_up() -> Iterator[None]:
    try:
        yield
    except HarnessUnavailableError as error:
        give_up(error)


def own_cluster(request: pytest.FixtureRequest, **how: Any) -> Iterator[ControlPlane]:
    """A cluster of a fixture's own, made as `how` says. Its logs are kept when a test failed."""
    cluster = ControlPlane(**how)
    with or_give_up():
        cluster.start()
    yield cluster
    cluster.stop(keep_logs=request.session.testsfailed > 0)


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One cluster for the whole session (for each worker of pytest-xdist)."""
    yield from own_cluster(request)


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own; deleted afterwards, without waiting for it to be gone."""
    name = control_plane.create_namespace()
    yield name
    control_plane.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def fake_nodes(control_plane: ControlPlane) -> Iterator[FakeNodes]:
    """Nodes that are gone after the test.

    Name them after the test where several share a cluster at once.
    """
    with FakeNodes(control_plane.api) as nodes:
        yield nodes


@pytest.fixture
def pod_keeper(control_plane: ControlPlane) -> Iterator[PodKeeper]:
    """Pods run as soon as they're bound, and are gone as soon as they're deleted."""
    with PodKeeper(control_plane.api) as keeper:
        yield keeper


@pytest.fixture
def real_registry() -> Iterator[RealRegistry]:
    """An empty registry of the test's own, as fast as the machine."""
    with or_give_up(), RealRegistry() as registry:
        yield registry
