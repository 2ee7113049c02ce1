"""What every test may ask for: those of Roost (tests) and of its laboratory (lab/tests)."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.harness.fixtures", "tests.long_files"]

# Derandomised: a run's verdict depends on the code alone. ROOST_HYPOTHESIS_PROFILE=search looks for
# new examples.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("ROOST_HYPOTHESIS_PROFILE", "steady"))
