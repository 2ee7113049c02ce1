"""A pod's requests, against the rule's plain form."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from roost_core.objects.requests import read_limits, read_requests
from tests.plain_requests import of_pod

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 9).map(str), max_size=3
)


def containers(least: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Containers that say what they request; of init containers, some are sidecars."""
    policies: list[dict[str, str]] = [{}, {"restartPolicy": "Always"}]
    if least:
        policies = [{}]
    container = st.builds(
        lambda amounts, policy: {"resources": {"requests": amounts}, **policy},
        AMOUNTS,
        st.sampled_from(policies),
    )
    return st.lists(container, min_size=least, max_size=4)


@given(mains=containers(1), inits=containers(0), overhead=AMOUNTS)
def test_requests_are_those_of_the_rule_in_plain_form(
    mains: list[dict[str, Any]], inits: list[dict[str, Any]], overhead: dict[str, str]
) -> None:
    spec = {"containers": mains, "initContainers": inits, "overhead": overhead}
    found = dict(read_requests(spec))
    for resource, units in (("cpu", 1000), ("memory", 1), ("example.com/gpu", 1)):
        assert found.get(resource, 0) == of_pod(spec, resource) * units


@given(mains=containers(1), inits=containers(0))
def test_limits_are_summed_up_as_requests_are(
    mains: list[dict[str, Any]], inits: list[dict[str, Any]]
) -> None:
    def limited(container: dict[str, Any]) -> dict[str, Any]:
        return {**container, "resources": {"limits": container["resources"]["requests"]}}

    spec = {"containers": mains, "initContainers": inits}
    as_limits = {part: [limited(container) for container in spec[part]] for part in spec}
    assert dict(read_limits(as_limits)) == dict(read_requests(spec))
