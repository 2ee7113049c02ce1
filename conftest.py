"""What every test may ask for: those of Roost (tests) and of its laboratory (lab/tests)."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

pytest_plugins = ["tests.harness.fixtures", "tests.long_files"]

# Derandomised: a run's verdict depends on the code alone. ROOST_HYPOTHESIS_PROFILE=search looks for
# new examples.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# For tools.mutate, which only asks whether there is an example: the smallest takes minutes to find.
settings.register_profile(
    "unshrunk", settings.get_profile("steady"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("ROOST_HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Roost's programs configure their process's logging: with `top` in one test, the next in that
    process would see no warnings.
    """
    root = logging.getLogger()
    handlers = [*root.handlers]
    loggers = [root, *map(logging.getLogger, logging.root.manager.loggerDict)]
    levels = [(logger, logger.level) for logger in loggers]
    yield
    root.handlers[:] = handlers
    for logger, level in levels:
        if logger.level != level:
            logger.setLevel(level)
