"""Model Cluster Autoscaler's expanders: which group gets the new nodes, where several could take the waiting pods.

Of equally good groups one is drawn, by the moment. Sources: cluster-autoscaler/expander (waste.go, mostpods.go,
price.go, preferred.go, priority.go), v1.34; of the price expander without its own price list: prices are the pools
file's, and pods count as if CPU and memory had the prices of the dearest pool's machines.
"""

from __future__ import annotations

from math import tanh
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.requests import CPU, MEMORY
from roost_lab.simulator.setup.pools import Expander

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_core.objects.pod import Pod
    from roost_lab.simulator.engine.node_groups import NodeGroup

# Knuth's multiplicative hash: close times give distant draws.
_SCATTER: Final = 2_654_435_761
_BITS: Final = 32
# Nodes of the cluster at most -> CPU that a new node preferably has, in cores (SimplePreferredNodeProvider).
_PREFERRED: Final = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
_PREFERRED_LARGEST: Final = 32
# A pod that is added to both sides of the ratio, so that small ones don't decide: half a core, 500 MiB.
_STABILISING_CORES: Final = 0.5
_STABILISING_BYTES: Final = 500 * 2**20
_SUPPRESSED_BY: Final = 15.0
# GiB of memory that cost as much as a core, roughly, on the clouds' price lists.
_GIB_A_CORE: Final = 7.5


class Option(NamedTuple):
    """One group that could take waiting pods."""

    # Of the group.
    place: int
    # New nodes that it would get.
    number: int
    pods: tuple[Pod, ...]


def choose(
    options: Sequence[Option], groups: Sequence[NodeGroup], expander: Expander, nodes: int, now: float
) -> Option | None:
    """The best option; None without any. nodes: of the whole cluster, booting ones included."""
    best = _best(options, groups, expander, nodes)
    return best[int(now) * _SCATTER % 2**_BITS * len(best) >> _BITS] if best else None


def _best(options: Sequence[Option], groups: Sequence[NodeGroup], expander: Expander, nodes: int) -> list[Option]:
    if len(options) < 2 or expander is Expander.RANDOM:
        return list(options)
    match expander:
        case Expander.PRIORITY:
            ranked = [-_priority(groups[option.place]) for option in options]
        case Expander.MOST_PODS:
            ranked = [-float(len(option.pods)) for option in options]
        case Expander.LEAST_WASTE:
            ranked = [_waste(option, groups[option.place]) for option in options]
        case Expander.PRICE:
            core = max(_core_price(group) for group in groups)
            ranked = [_dearness(option, groups[option.place], nodes, core) for option in options]
    least = min(ranked)
    return [option for option, rank in zip(options, ranked, strict=True) if rank == least]


def _priority(group: NodeGroup) -> float:
    return -1.0 if group.priority is None else float(group.priority)


def _requested(option: Option, name: str) -> int:
    return sum(dict(pod.spec.requests).get(name, 0) for pod in option.pods)


def _waste(option: Option, group: NodeGroup) -> float:
    """Shares of CPU and memory that the pods leave, added up."""
    cpu, memory = (
        option.number * amount for amount in (group.assumed.node_cpu_millicores, group.assumed.node_memory_bytes)
    )
    return (cpu - _requested(option, CPU)) / cpu + (memory - _requested(option, MEMORY)) / memory


def _cores(cpu_millicores: float, memory_bytes: float) -> float:
    return cpu_millicores / 1000 + memory_bytes / 2**30 / _GIB_A_CORE


def _core_price(group: NodeGroup) -> float:
    return group.price / _cores(group.assumed.node_cpu_millicores, group.assumed.node_memory_bytes)


def _dearness(option: Option, group: NodeGroup, nodes: int, core: float) -> float:
    """What the nodes cost per what the pods are worth, times how unfit the machine is for a cluster of that size."""
    stabilising = core * _cores(_STABILISING_CORES * 1000, _STABILISING_BYTES)
    worth = core * _cores(_requested(option, CPU), _requested(option, MEMORY))
    ratio = (group.price * option.number + stabilising) / (worth + stabilising) if worth + stabilising else 0.0
    preferred = next((cores for most, cores in _PREFERRED if nodes <= most), _PREFERRED_LARGEST)
    cores = group.assumed.node_cpu_millicores / 1000
    unfitness = max(preferred / cores, cores / preferred)
    return ratio * ((unfitness - 1) * (1 - tanh((option.number - 1) / _SUPPRESSED_BY)) + 1)
