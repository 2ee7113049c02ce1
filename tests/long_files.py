"""Which files of tests start first."""

import pytest

# Files that take minutes. The longest start first, so that all processes end at about the same
# time; before those that need more programs than the control plane's, which a first run is still
# building.
LONG_FILES = (
    "controllers/test_controllers_faults.py",
    "recorder/test_recorder.py",
    "controllers/test_image_gate.py",
    "together/test_never_worse.py",
    "together/test_rights.py",
    "controllers/test_placeholder_mover.py",
    "install/test_install.py",
    "install/test_commands_in_the_cluster.py",
    "controllers/test_image_gate_real.py",
    "controllers/test_popular_images.py",
    "harness/test_harness.py",
    "scheduler/test_scheduler_model.py",
    "controllers/test_headroom.py",
    "simulator/test_simulator_hour_warm.py",
    "webhook/test_webhook_server.py",
    "parity/test_accepted.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; the order within a file, and of the others, stays."""
    ranks = {name: rank for rank, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: ranks.get("/".join(item.path.parts[-2:]), len(ranks)))
