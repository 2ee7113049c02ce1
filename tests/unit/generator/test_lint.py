"""`roost validate` across keys: what can't work is refused, what surprises is warned of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.pipeline import find_faults
from generator.values.release_name import Release
from tests.recorded_data import rows
from tests.unit.generator.linted import assert_refused, assert_warned, found, merged, said, table

POOLS = ", ".join(
    f'{{kubespawner_override: {{node_selector: {{pool: "{number}"}}}}}}' for number in range(20)
)


@pytest.mark.parametrize(("text", "reason"), table("refused"))
def test_values_that_can_not_work_are_refused_with_the_reason(text: str, reason: str) -> None:
    assert_refused(text, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *table("warned"),
        (f"singleuser: {{image: {{name: a}}, profileList: [{POOLS}]}}", "make 21 DaemonSets"),
    ],
)
def test_values_that_surprise_are_warned_of_with_the_reason(text: str, reason: str) -> None:
    assert_warned(text, reason)


@pytest.mark.parametrize(("text", "words"), table("reach-warned"))
def test_a_way_to_a_cold_start_is_named_with_its_fix_and_nothing_beside(
    text: str, words: str
) -> None:
    (fault,) = found(text)
    assert words in str(fault)
    assert fault.severity == "warning"
    assert fault.fix


@pytest.mark.parametrize(("text", "reason"), table("unsaid"))
def test_what_is_no_worry_is_not_said(text: str, reason: str) -> None:
    assert reason not in said(text)


def test_a_policy_needs_kubernetes_1_36() -> None:
    off = (
        "podClasses: {build: {home: null}, user: {warm: null}}\nimageGate: {mode:"
        " prefer}\nplaceholders: []"
    )
    text = f"admission: {{mode: policy}}\n{off}"
    assert "policy needs 1.36" in said(text, Release(kube_version="v1.35.9"))
    assert found(text, Release(kube_version="v1.36.0")) == []
    assert "admission policies don't know builders" in said("admission: {mode: policy}")


@pytest.mark.parametrize(
    ("cidr", "better"),
    [
        ("010.1.0.0/16", "10.1.0.0/16"),
        ("10.0.0.0/08", "10.0.0.0/8"),
        ("fd00::/064", "fd00::/64"),
        ("fd00::00001/128", "fd00::1/128"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:0a00:0/104", "10.0.0.0/8"),
        ("::ffff:010.0.0.0/104", "10.0.0.0/8"),
        ("10.1.2.3/16", "10.1.0.0/16"),
        ("fd00::1/64", "fd00::/64"),
    ],
)
@pytest.mark.parametrize(
    ("version", "severity"), [("v1.33.0", "warning"), ("v1.35.9", "warning"), ("v1.36.0", "error")]
)
def test_a_block_that_programs_read_differently_is_an_error_from_1_36_on(
    cidr: str, better: str, version: str, severity: str
) -> None:
    text = f"networkPolicy: {{ingress: {{metrics: [{{ipBlock: {{cidr: '{cidr}'}}}}]}}}}"
    (fault,) = found(text, Release(kube_version=version))
    assert (fault.severity, fault.fix) == (severity, f"Write {better}.")


@pytest.mark.parametrize(("method", "version", "expected"), rows("generator/puller-methods"))
def test_how_images_come_to_nodes_before_1_35_is_said(
    method: str, version: str, expected: list[list[str]]
) -> None:
    text = f"singleuser: {{image: {{name: i, tag: v1}}}}\nprePuller: {{method: {method}}}"
    faults = [
        fault
        for fault in find_faults(merged(text), Release(kube_version=version), with_hints=True)
        if "image volumes" in str(fault)
    ]
    assert [[fault.severity, str(fault).partition("feature ")[2]] for fault in faults] == expected


@pytest.mark.parametrize("text", ["admission: {mode: policy}", "webhook: {readNodes: false}"])
def test_a_warm_set_that_does_nothing_is_warned_of_where_somebody_chose_it(text: str) -> None:
    own = "podClasses: {user: {warm: {spare: 2}}, gpu: {match: {labels: {a: b}}, warm: {}}}"
    hits = [fault.key for fault in found(f"{text}\n{own}") if fault.key.endswith(".warm")]
    assert hits == ["podClasses.user.warm", "podClasses.gpu.warm"]


def test_a_release_that_begins_with_a_digit_needs_another_name_for_its_service() -> None:
    assert "begin with a digit" in said("", Release(name="1hub"))
    assert found("fullnameOverride: hub", Release(name="1hub")) == []


@pytest.mark.parametrize(("text", "_reason"), table("fine"))
def test_values_that_work_have_nothing_to_warn_of(text: str, _reason: str) -> None:
    assert found(text) == []


LEARNS = "replicas: 0, learn: {min: 0, max: 60, timeZone: UTC}"


@pytest.mark.parametrize(
    ("others", "severities"),
    [
        ("", ["warning"]),
        (", nodeSelector: {pool: a}", ["hint"]),
        (', resources: {requests: {cpu: "4"}}', ["hint"]),
        # Its nodes may have a taint of their own.
        (", nodeSelector: {pool: a}, tolerations: [{key: a, operator: Exists}]", []),
    ],
)
def test_sets_that_learn_on_the_same_nodes_are_named(others: str, severities: list[str]) -> None:
    faults = [
        fault
        for fault in find_faults(
            merged(f"placeholders: [{{name: a, {LEARNS}}}, {{name: b, {LEARNS}{others}}}]"),
            Release("hub", "jhub"),
            with_hints=True,
        )
        if "sets a and b" in str(fault)
    ]
    assert [fault.severity for fault in faults] == severities
    assert all("placeholders[1].learn" in str(fault) and fault.fix for fault in faults)


GPUS = st.sampled_from(
    [
        "nvidia.com/gpu",
        "nvidia.com/mig-1g.5gb",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "google.com/tpu",
        "aws.amazon.com/neuroncore",
        "habana.ai/gaudi",
    ]
)
# Resources of nodes that cost as much as others.
USUAL = st.sampled_from(["cpu", "memory", "github.com/fuse", "smarter-devices/kvm"])


def _price_warnings(text: str) -> list[str]:
    return [fault.key for fault in found(text) if "prices.nodeHour" in str(fault)]


@given(
    gpu=GPUS,
    part=st.sampled_from(["requests", "limits"]),
    other=USUAL,
    count=st.integers(1, 8),
    node_hour=st.floats(0.5, 9),
)
def test_a_gpu_that_is_priced_as_other_nodes_is_warned_of(
    gpu: str, part: str, other: str, count: int, node_hour: float
) -> None:
    usual = f"{{name: a, {LEARNS}, resources: {{{part}: {{{other}: 1}}}}}}"
    size = f"resources: {{{part}: {{{gpu}: {count}}}}}, nodeSelector: {{pool: g}}"
    course = f"{{name: g, {LEARNS}, {size}}}"
    prices = f"prices: {{waitingHour: 4, nodeHour: {node_hour}, monthlyCeiling: 200}}"
    of_all = f"placeholder: {{defaults: {{{prices}}}}}\n"
    assert _price_warnings(f"placeholders: [{usual}, {course}]") == ["placeholders[1].learn"]
    # Another price, which both have.
    assert _price_warnings(f"{of_all}placeholders: [{usual}, {course}]")
    # Named for this set, or for all nodes where all have GPUs.
    assert not _price_warnings(f"placeholders: [{usual}, {{name: g, {LEARNS}, {size}, {prices}}}]")
    assert not _price_warnings(f"{of_all}placeholders: [{course}]")
    # No GPU, or nothing is learned, so that prices say nothing.
    assert not _price_warnings(f"placeholders: [{usual}]")
    assert not _price_warnings(f"placeholders: [{usual}, {{name: g, replicas: 1, {size}}}]")
    zero = size.replace(f"{gpu}: {count}", f"{gpu}: 0")
    assert not _price_warnings(f"placeholders: [{{name: g, {LEARNS}, {zero}}}]")


@pytest.mark.parametrize(
    ("waiting", "node", "is_warned"),
    [
        (4, 0.4, False),
        (4, 8, False),
        (4, 8.1, True),
        (4, 60, True),
        (600, 60, False),
        (0, 1, False),
    ],
)
def test_prices_in_different_money_are_warned_of(
    waiting: float, node: float, is_warned: bool
) -> None:
    prices = f"prices: {{waitingHour: {waiting}, nodeHour: {node}}}"
    for text in (
        f"placeholder: {{defaults: {{{prices}}}}}\nplaceholders: [{{name: a, {LEARNS}}}]",
        f"placeholders: [{{name: a, {LEARNS}, {prices}}}]",
    ):
        faults = [fault for fault in found(text) if "hardly any node" in str(fault)]
        assert [fault.key for fault in faults] == ["placeholders[0].learn"] * is_warned
    fixed = f"placeholder: {{defaults: {{{prices}}}}}\nplaceholders: [{{name: a, replicas: 1}}]"
    assert "hardly any node" not in str(found(fixed))


def test_a_ceiling_that_a_sets_prices_replace_is_told() -> None:
    own = "prices: {waitingHour: 4, nodeHour: 3}"
    for ceiling, entry, is_told in (
        (", monthlyCeiling: 50", f"{LEARNS}, {own}", True),
        (", monthlyCeiling: 50", f"{LEARNS}", False),
        (", monthlyCeiling: 50", f"{LEARNS}, {own[:-1]}, monthlyCeiling: 9}}", False),
        (", monthlyCeiling: 50", f"replicas: 1, {own}", False),
        ("", f"{LEARNS}, {own}", False),
    ):
        usual = f"{{waitingHour: 4, nodeHour: 0.4{ceiling}}}"
        text = (
            f"placeholder: {{defaults: {{prices: {usual}}}}}\nplaceholders: [{{name: a, {entry}}}]"
        )
        told = [fault for fault in found(text) if "monthlyCeiling of 50" in str(fault)]
        assert [fault.key for fault in told] == ["placeholders[0].prices"] * is_told
