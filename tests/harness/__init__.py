"""A real Kubernetes control plane for tests: pinned programs, started on loopback, stopped without a trace."""

from tests.harness.api import Api, ApiError
from tests.harness.binaries import (
    MINORS,
    NEWEST_MINOR,
    BuildError,
    HarnessUnavailableError,
    ensure_binaries,
    ensure_binary,
)
from tests.harness.controlplane import CONTROLLERS, ControlPlane, KubectlError
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.ports import ReservedPort
from tests.harness.processes import Process, ProgramExitedError
from tests.harness.real_nodes import RealNode
from tests.harness.registry import PushedImage, RealRegistry
from tests.harness.scheduler import Scheduler, scheduler_config, start_scheduler
from tests.harness.waiting import WaitError, wait_until

__all__ = [
    "CONTROLLERS",
    "MINORS",
    "NEWEST_MINOR",
    "Api",
    "ApiError",
    "BuildError",
    "ControlPlane",
    "FakeNodes",
    "HarnessUnavailableError",
    "KubectlError",
    "PodKeeper",
    "Process",
    "ProgramExitedError",
    "PushedImage",
    "RealNode",
    "RealRegistry",
    "ReservedPort",
    "Scheduler",
    "WaitError",
    "ensure_binaries",
    "ensure_binary",
    "scheduler_config",
    "start_scheduler",
    "wait_until",
]
