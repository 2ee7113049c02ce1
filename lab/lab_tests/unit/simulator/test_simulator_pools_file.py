"""Pools files: what is read of one, and what each fault says."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab_tests.small_worlds import policy
from roost_core.objects.selectors import Taint
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.pools import Expander
from roost_lab.simulator.setup.pools_file import read_pools, with_pools
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.request import in_pools, make_worlds

UNIVERSITY = "lab/lab_tests/data/pools/university.yaml"


def faults(path: Path, text: str) -> list[str]:
    """Each fault of a file with this text, its name left out."""
    file = path / "pools.yaml"
    file.write_text(text)
    with pytest.raises(AssumptionsError) as error:
        read_pools(str(file), Assumptions())
    return [str(fault).replace(str(file), "pools.yaml") for fault in error.value.faults]


def test_a_file_is_read_as_it_is_written() -> None:
    pools = read_pools(UNIVERSITY, Assumptions())
    users, gpus = pools.pools
    assert (users.name, users.cpu_millicores, users.memory_bytes, users.pods) == ("users", 7910, 52 * 10**9, 110)
    assert (users.min_nodes, users.max_nodes, users.price, users.interruptions_per_hour) == (1, 20, 0.21, 0.02)
    assert users.zones == ("europe-west1-b", "europe-west1-c")
    assert users.taints == (Taint("hub.jupyter.org/dedicated", "user", "NoSchedule"),)
    assert (gpus.resources, gpus.boot_seconds) == ((("nvidia.com/gpu", 1),), 300)
    # What the file leaves out is as assumed, or nothing.
    assert (gpus.boot_sigma, gpus.interruptions_per_hour, gpus.min_nodes) == (Assumptions().boot_sigma, 0, 0)
    small, large = users.alternatives
    assert (users.machine_type, small.machine_type, large.machine_type) == tuple(
        f"e2-highmem-{cores}" for cores in (8, 4, 16)
    )
    # All else is the pool's.
    assert (small.price, small.max_nodes, small.zones, small.boot_seconds) == (0.105, 40, users.zones, 150)
    assert gpus.machine_type == "3.92 CPU, 12 GB"
    standard, gpu = pools.profiles
    # zero-to-jupyterhub's G are powers of 1024.
    assert (standard.cpu_millicores, standard.memory_bytes, standard.share) == (50, 2**30, 99)
    assert (gpu.cpu_millicores, gpu.resources) == (None, (("nvidia.com/gpu", 1),))
    assert gpu.tolerations == (("nvidia.com/gpu", "Exists", "", "NoSchedule"),)
    assert (pools.expander, pools.currency, pools.claims_share) == (Expander.LEAST_WASTE, "EUR", 0.6)


def test_the_page_shows_the_file_that_is_tested() -> None:
    page = Path("lab/docs/simulator-pools.md").read_text(encoding="utf-8")
    assert f"```yaml\n{Path(UNIVERSITY).read_text(encoding='utf-8')}```" in page


MACHINE = "pools: [{name: a, machine: {cpu: 4, memory: 16G}}]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "pools.yaml:1: pools: found no pool, expected at least one. Describe the machines of your node pools."),
        (MACHINE + "expander: waste\n", 'pools.yaml:2: expander: found "waste", expected random or least-waste or '),
        (MACHINE + "claims_share: 2\n", "pools.yaml:2: claims_share: found 2, expected a number from 0 to 1."),
        (MACHINE + "claims_share: 0.5\n", "pools.yaml:2: claims_share: found 0.5, expected zones in at least one pool"),
        (MACHINE + "prize: 1\n", "pools.yaml:2: prize: found an unknown key, expected one of a pools file's. Known"),
        ("pools: 3\n", "pools.yaml:1: pools: found 3, expected a list."),
        ("pools:\n- name: a\n", "pools.yaml:2: pools[0].machine.cpu: found null, expected what a node has for pods"),
        (
            "pools:\n- name: a\n  machine: {cpu: 4, memory: lots}\n",
            'pools.yaml:3: pools[0].machine.memory: found "lots"',
        ),
        (
            MACHINE + MACHINE.replace("pools", "pool"),
            "pools.yaml:2: pool: found an unknown key, expected one of a pools",
        ),
        (
            "pools:\n- {name: a, machine: {cpu: 4, memory: 8G}}\n- {name: a, machine: {cpu: 4, memory: 8G}}\n",
            'pools.yaml:3: pools[1].name: found "a", expected a name that no other pool has.',
        ),
        (
            "pools:\n- {name: a, machine: {cpu: 4, memory: 8G}, min_nodes: 5, max_nodes: 2}\n",
            "pools.yaml:2: pools[0].min_nodes: found 5, expected at most max_nodes, which is 2.",
        ),
        (
            "pools:\n- {name: a, machine: {cpu: 4, memory: 8G}, taints: [{key: a, effect: Stay}]}\n",
            'pools.yaml:2: pools[0].taints[0].effect: found "Stay", expected NoSchedule or PreferNoSchedule or',
        ),
        (
            "pools:\n- {name: a, machine: {cpu: 4, memory: 8G}, labels: {gpu: true}}\n",
            "pools.yaml:2: pools[0].labels.gpu: found true, expected text. Put it in quotes.",
        ),
        (
            MACHINE + "profileList:\n- display_name: A\n  kubespawner_override: {mem_guarantee: 2Gi}\n",
            'pools.yaml:4: profileList[0].kubespawner_override.mem_guarantee: found "2Gi", expected an amount',
        ),
        (
            MACHINE + "profileList:\n- display_name: A\n  profile_options: {image: {}}\n",
            "pools.yaml:4: profileList[0].profile_options: found options, expected none. Write each combination as a",
        ),
        (
            MACHINE + "profileList:\n- display_name: A\n  share: 0\n",
            "pools.yaml:2: profileList: found no profile with a share above 0, expected at least one.",
        ),
        (
            "pools:\n- name: a\n  machine: {cpu: 4, memory: 8G}\n  alternatives:\n  - {name: b, price: 2}\n",
            "pools.yaml:5: pools[0].alternatives[0].name: found an unknown key, expected one of a pools file's.",
        ),
        (
            "pools:\n- name: a\n  machine: {cpu: 4, memory: 8G}\n  alternatives:\n  - {price: 2}\n",
            'pools.yaml:5: pools[0].alternatives[0].machine.type: found "4 CPU, 8 GB", expected a type that no other',
        ),
        (
            "pools:\n- name: a\n  machine: {cpu: 4, memory: 8G, disk: 2G}\n",
            'pools.yaml:3: pools[0].machine.disk: found "2G", expected room for an image as large as one in 10,000, ',
        ),
        ("pools: [\n", "pools.yaml:2: "),
    ],
)
def test_a_fault_names_file_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    assert any(fault.startswith(said) for fault in faults(tmp_path, text)), faults(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssumptionsError, match=r"missing.yaml: can't be read .* Give the path of a pools file"):
        read_pools(str(tmp_path / "missing.yaml"), Assumptions())


def test_assumptions_about_the_only_pool_contradict_a_pools_file() -> None:
    worlds = make_worlds(["max_nodes=5"])
    with pytest.raises(AssumptionsError, match="--set: max_nodes: found an assumption about the only pool"):
        in_pools(worlds, UNIVERSITY, {"--set": ["max_nodes=5"]})
    with pytest.raises(AssumptionsError, match="--vary: node_pods: found an assumption about the only pool"):
        in_pools(worlds, UNIVERSITY, {"--set": ["pulls=slow"], "--vary": ["node_pods=10,20"]})
    (world,) = in_pools(make_worlds(["user_cpu_millicores=20"]), UNIVERSITY, {"--set": ["user_cpu_millicores=20"]})
    assert world.name == f"user_cpu_millicores=20, pools={UNIVERSITY}"


def refused(tmp_path: Path, name: str, change: tuple[str, str], values: str = "{}") -> str:
    """Why a policy can't be played in the university's pools with a change of their file; "": it can."""
    text = Path(UNIVERSITY).read_text(encoding="utf-8")
    assert change[0] in text
    changed = tmp_path / "pools.yaml"
    changed.write_text(text.replace(*change))
    try:
        check_policy(policy(name, values), with_pools(Assumptions(), read_pools(str(changed), Assumptions())))
    except AssumptionsError as error:
        return str(error).replace(str(changed), "pools.yaml")
    return ""


def test_values_and_profiles_that_fit_no_pool_are_refused(tmp_path: Path) -> None:
    same = ("currency: EUR", "currency: EUR")
    assert refused(tmp_path, "roost", same) == ""
    said = refused(tmp_path, "roost", ("node_selector: {gpu: t4}", "node_selector: {gpu: a100}"))
    assert said.startswith("pools.yaml:37: profileList[1]: found GPU, whose users fit no pool (")
    assert "such as fit an empty one of cpu 7,910, memory 52,000,000,000" in said
    assert "Compare node_selector, tolerations and requests with the pools' labels, taints and machines." in said
    # Nobody has that profile.
    assert refused(tmp_path, "roost", ("share: 1\n    kubespawner", "share: 0\n    kubespawner")) == ""
    assert "profileList[1]" in refused(tmp_path, "roost", ("nvidia.com/gpu: 1}", "amd.com/gpu: 1}"))
    assert "profileList[1]" in refused(tmp_path, "roost", ("tolerations: [{key: nvidia", "tolerations: [{key: amd"))
    said = refused(tmp_path, "z2jh", same, '{"singleuser": {"nodeSelector": {"pool": "users"}}}')
    assert "profileList[0]: found Standard, whose users fit no pool (" in said
    large = '{"placeholders": [{"name": "default", "replicas": 1, "resources": {"requests": {"memory": "60G"}}}]}'
    assert "placeholders[0]: found pods that fit no node (" in refused(tmp_path, "roost", same, large)
