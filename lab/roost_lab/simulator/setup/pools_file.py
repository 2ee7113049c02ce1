"""Read a pools file. Every fault names the file, the line and the key."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from generator.faults import Fault, UsageError, ValuesError, describe, show_path
from generator.values.files import read_file
from generator.values.loader import load
from roost_core.objects.quantities import parse_hub_bytes, parse_quantity
from roost_core.objects.selectors import Taint
from roost_lab.simulator.setup.checks import AssumptionsError, large_image_bytes, show_assumption
from roost_lab.simulator.setup.pools import Expander, Pool, Pools, UserProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from generator.faults import Path
    from generator.values.sources import LoadedFile
    from roost_lab.simulator.setup.assumptions import Assumptions

# Assumptions about the only pool, which a pools file replaces.
REPLACED: Final = (
    "node_cpu_millicores", "node_memory_bytes", "node_pods", "node_disk_bytes", "min_nodes", "max_nodes",
    "boot_median_seconds", "boot_sigma",
)  # fmt: skip
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MOST_POOLS: Final = 100
_POOL_KEYS: Final = (
    "name", "labels", "taints", "zones", "machine", "price", "boot_seconds", "boot_sigma", "interruptions_per_hour",
    "min_nodes", "max_nodes", "priority", "alternatives",
)  # fmt: skip
# Of a pool, what another machine may have otherwise.
_MACHINE_KEYS: Final = (
    "machine", "price", "boot_seconds", "boot_sigma", "interruptions_per_hour", "min_nodes", "max_nodes",
)  # fmt: skip
_FILE_KEYS: Final = ("pools", "profileList", "expander", "currency", "claims_share")
_NOT_PLAYED: Final = ("node_affinity_required", "profile_options")


def read_pools(name: str, assumptions: Assumptions) -> Pools:
    """The pools in the file; disks and boots that it leaves out are as assumed. Raises AssumptionsError."""
    try:
        file = load(read_file(name), name)
    except ValuesError as error:
        raise AssumptionsError(error.faults) from None
    except UsageError as error:
        text = str(error).replace("a values file", "a pools file")
        raise AssumptionsError([Fault("--pools", 0, "", text)]) from None
    reader = _Reader(file, name)
    pools = reader.read(assumptions)
    if reader.faults:
        raise AssumptionsError(reader.faults)
    return pools


def refuse_replaced(given: Mapping[str, Iterable[str]], file: str) -> None:
    """Raise AssumptionsError where assumptions of the command line are about the only pool, which `file` replaces.

    given: option -> names of assumptions.
    """
    faults = [
        Fault(option, 0, name, "an assumption about the only pool", f"nothing: {file} says it of each pool")
        for option, names in given.items()
        for name in dict.fromkeys(names)
        if name in REPLACED
    ]
    if faults:
        raise AssumptionsError(faults)


def with_pools(assumptions: Assumptions, pools: Pools) -> Assumptions:
    """The assumptions with these pools; those about one pool become the largest machine's, and the sums of limits."""
    machines = pools.pools
    disks = [pool.disk_bytes for pool in machines]
    return replace(
        assumptions,
        pools=pools,
        node_cpu_millicores=max(pool.cpu_millicores for pool in machines),
        node_memory_bytes=max(pool.memory_bytes for pool in machines),
        node_pods=max(pool.pods for pool in machines),
        node_disk_bytes=max(disks) if all(disks) else 0,
        min_nodes=sum(pool.min_nodes for pool in machines),
        max_nodes=sum(pool.max_nodes for pool in machines),
        boot_median_seconds=max(pool.boot_seconds for pool in machines),
    )


class _Reader:
    def __init__(self, file: LoadedFile, name: str) -> None:
        self._file = file
        self._name = name
        self.faults: list[Fault] = []

    def read(self, assumptions: Assumptions) -> Pools:
        values = self._file.values
        self._known(values, (), _FILE_KEYS)
        pools = [self._pool(body, ("pools", place), assumptions) for place, body in self._list(values, (), "pools")]
        if not pools and not self.faults:
            self._fault(("pools",), "no pool", "at least one", "Describe the machines of your node pools.")
        names = [pool.name for pool in pools]
        for place, name in enumerate(names):
            if name in names[:place]:
                self._fault(("pools", place, "name"), describe(name), "a name that no other pool has")
        for place, pool in enumerate(pools):
            types = [pool.machine_type, *(machine.machine_type for machine in pool.alternatives)]
            for other, name in enumerate(types[1:], start=1):
                if name in types[:other]:
                    path: Path = ("pools", place, "alternatives", other - 1, "machine", "type")
                    self._fault(path, describe(name), "a type that no other machine of the pool has")
        if len(pools) > _MOST_POOLS:
            self._fault(("pools",), f"{len(pools)} pools", f"at most {_MOST_POOLS}")
        profiles = self._list(values, (), "profileList")
        if profiles and not any(body.get("share", 1) for _, body in profiles):
            self._fault(("profileList",), "no profile with a share above 0", "at least one")
        expander: Any = values.get("expander", Expander.LEAST_WASTE.value)
        if expander not in list(Expander):
            self._fault(("expander",), describe(expander), " or ".join(Expander))
            expander = Expander.LEAST_WASTE
        claims = self._number(values, (), "claims_share", 0.0, greatest=1.0)
        if claims and not any(pool.zones for pool in pools):
            self._fault(("claims_share",), f"{claims:g}", "zones in at least one pool", "Add `zones` to the pools.")
        return Pools(
            file=self._name,
            pools=tuple(pools),
            profiles=tuple(self._profile(body, ("profileList", place)) for place, body in profiles),
            profile_lines=tuple(self._line(("profileList", place)) for place, _ in profiles),
            expander=Expander(expander),
            currency=self._text(values, (), "currency"),
            claims_share=claims,
        )

    def _pool(self, body: Mapping[str, Any], path: Path, assumptions: Assumptions) -> Pool:
        self._known(body, path, _POOL_KEYS)
        name = self._text(body, path, "name")
        if not _NAME.fullmatch(name):
            self._fault((*path, "name"), describe(body.get("name")), "a name, such as users")
        machine = self._map(body, path, "machine")
        inner = (*path, "machine")
        amounts = {key: self._amount(machine, inner, key) for key in machine if key not in ("disk", "pods", "type")}
        for key in ("cpu", "memory"):
            if not amounts.get(key):
                self._fault((*inner, key), describe(machine.get(key)), "what a node has for pods, such as 7910m or 36G")
        least = self._whole(body, path, "min_nodes", 0)
        most = self._whole(body, path, "max_nodes", 100, least=1)
        if least > most:
            self._fault((*path, "min_nodes"), str(least), f"at most max_nodes, which is {most}")
        disk = int(self._amount(machine, inner, "disk")) if "disk" in machine else assumptions.node_disk_bytes
        large = large_image_bytes(assumptions)
        if 0 < disk < large:
            expected = f"room for an image as large as one in 10,000, {show_assumption(round(large))}, or 0: endless"
            self._fault((*inner, "disk"), describe(machine.get("disk")), expected)
        alternatives = self._list(body, path, "alternatives")
        for place, other in alternatives:
            self._known(other, (*path, "alternatives", place), _MACHINE_KEYS)
        cpu, memory = amounts.pop("cpu", 0.0), amounts.pop("memory", 0.0)
        return Pool(
            name=name,
            machine_type=self._text(machine, inner, "type") or f"{cpu:g} CPU, {memory / 1e9:g} GB",
            labels=self._labels(body, path, "labels"),
            taints=tuple(
                self._taint(taint, (*path, "taints", place)) for place, taint in self._list(body, path, "taints")
            ),
            zones=self._zones(body, path),
            cpu_millicores=round(cpu * 1000),
            memory_bytes=int(memory),
            pods=self._whole(machine, inner, "pods", 110, least=1),
            disk_bytes=disk,
            resources=tuple(sorted((key, int(amount)) for key, amount in amounts.items())),
            boot_seconds=self._number(body, path, "boot_seconds", assumptions.boot_median_seconds, least=0.001),
            boot_sigma=self._number(body, path, "boot_sigma", assumptions.boot_sigma, greatest=3.0),
            price=self._number(body, path, "price", 0.0),
            interruptions_per_hour=self._number(body, path, "interruptions_per_hour", 0.0, greatest=60.0),
            min_nodes=least,
            max_nodes=most,
            priority=self._whole(body, path, "priority", 0) if "priority" in body else None,
            alternatives=tuple(
                self._pool({**body, "alternatives": None, **other}, (*path, "alternatives", place), assumptions)
                for place, other in alternatives
            ),
        )

    def _zones(self, body: Mapping[str, Any], path: Path) -> tuple[str, ...]:
        zones = body.get("zones") or []
        if not isinstance(zones, list) or not all(isinstance(zone, str) and _NAME.fullmatch(zone) for zone in zones):
            self._fault((*path, "zones"), describe(zones), "a list of names, such as [us-east1-b, us-east1-c]")
            return ()
        return tuple(dict.fromkeys(zones))

    def _taint(self, body: Mapping[str, Any], path: Path) -> Taint:
        self._known(body, path, ("key", "value", "effect"))
        key, effect = self._text(body, path, "key"), self._text(body, path, "effect")
        if not key:
            self._fault((*path, "key"), describe(body.get("key")), "the taint's key")
        if effect not in _EFFECTS and isinstance(body.get("effect"), str | None):
            self._fault((*path, "effect"), describe(body.get("effect")), " or ".join(_EFFECTS))
        return Taint(key, self._text(body, path, "value"), effect)

    def _profile(self, body: Mapping[str, Any], path: Path) -> UserProfile:
        name = self._text(body, path, "display_name") or self._text(body, path, "slug")
        if not name:
            self._fault((*path, "display_name"), describe(body.get("display_name")), "the profile's name")
        for key in _NOT_PLAYED[1:]:
            if body.get(key):
                self._fault((*path, key), "options", "none", "Write each combination as a profile with its share.")
        override, inner = self._map(body, path, "kubespawner_override"), (*path, "kubespawner_override")
        if override.get(_NOT_PLAYED[0]):
            self._fault((*inner, _NOT_PLAYED[0]), "terms", "none: they aren't simulated", "Use node_selector.")
        resources: dict[str, int] = {}
        for key in ("extra_resource_limits", "extra_resource_guarantees"):
            extra = self._map(override, inner, key)
            resources |= {resource: int(self._amount(extra, (*inner, key), resource)) for resource in extra}
        tolerations = [
            (*(self._text(one, (*inner, "tolerations", place), key) for key in ("key", "operator", "value", "effect")),)
            for place, one in self._list(override, inner, "tolerations")
        ]
        # Kubernetes takes a limit without a request as the request.
        cpu = self._first(override, inner, ("cpu_guarantee", "cpu_limit"), parse_quantity, "cores, such as 0.5")
        memory = self._first(
            override, inner, ("mem_guarantee", "mem_limit"), parse_hub_bytes, "an amount of memory, such as 2G"
        )
        return UserProfile(
            name=name,
            share=self._number(body, path, "share", 1.0, least=0.0),
            node_selector=self._labels(override, inner, "node_selector"),
            tolerations=tuple(
                (key, operator or "Equal", value, effect) for key, operator, value, effect in tolerations
            ),
            cpu_millicores=None if cpu is None else round(cpu * 1000),
            memory_bytes=None if memory is None else round(memory),
            resources=tuple(sorted(resources.items())),
        )

    def _first(
        self, body: Mapping[str, Any], path: Path, keys: Sequence[str], parse: Callable[[object], Any], expected: str
    ) -> float | None:
        for key in keys:
            if body.get(key) is not None:
                try:
                    amount = float(parse(body[key] if not isinstance(body[key], float) else f"{body[key]:.15g}"))
                except (ValueError, OverflowError):
                    self._fault((*path, key), describe(body[key]), expected)
                    return None
                return amount
        return None

    # Kinds of values

    def _list(self, body: Mapping[str, Any], path: Path, key: str) -> list[tuple[int, Mapping[str, Any]]]:
        """Entries that are maps, with their places."""
        found = body.get(key)
        if found is None:
            return []
        if not isinstance(found, list):
            self._fault((*path, key), describe(found), "a list")
            return []
        for place, entry in enumerate(found):
            if not isinstance(entry, dict):
                self._fault((*path, key, place), describe(entry), "a map of keys")
        return [(place, entry) for place, entry in enumerate(found) if isinstance(entry, dict)]

    def _map(self, body: Mapping[str, Any], path: Path, key: str) -> Mapping[str, Any]:
        found = body.get(key)
        if found is None or isinstance(found, dict):
            return found or {}
        self._fault((*path, key), describe(found), "a map of keys")
        return {}

    def _labels(self, body: Mapping[str, Any], path: Path, key: str) -> tuple[tuple[str, str], ...]:
        labels = self._map(body, path, key)
        for label, value in labels.items():
            if not isinstance(value, str):
                self._fault((*path, key, label), describe(value), "text", "Put it in quotes.")
        return tuple(sorted((label, str(value)) for label, value in labels.items()))

    def _text(self, body: Mapping[str, Any], path: Path, key: str) -> str:
        found = body.get(key)
        if found is None or isinstance(found, str):
            return found or ""
        self._fault((*path, key), describe(found), "text", "Put it in quotes.")
        return ""

    def _number(
        self,
        body: Mapping[str, Any],
        path: Path,
        key: str,
        default: float,
        *,
        least: float = 0.0,
        greatest: float = math.inf,
    ) -> float:
        found = body.get(key, default)
        is_number = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
        if not is_number or not least <= found <= greatest:
            expected = f"a number from {least:g} to {greatest:g}" if greatest < math.inf else f"a number from {least:g}"
            self._fault((*path, key), describe(found), expected)
            return default
        return float(found)

    def _whole(self, body: Mapping[str, Any], path: Path, key: str, default: int, *, least: int = 0) -> int:
        found = self._number(body, path, key, default, least=least, greatest=1e6)
        if found != int(found):
            self._fault((*path, key), describe(found), "a whole number")
        return int(found)

    def _amount(self, body: Mapping[str, Any], path: Path, key: str) -> float:
        try:
            amount = float(parse_quantity(_plain(body[key])))
        except (ValueError, OverflowError):
            amount = -1.0
        if amount < 0:
            self._fault((*path, key), describe(body[key]), "a quantity, such as 4, 7910m or 36G")
            return 0.0
        return amount

    # Faults

    def _known(self, body: Mapping[str, Any], path: Path, keys: Sequence[str]) -> None:
        for key in body:
            if key not in keys:
                near = get_close_matches(key, keys, 1, 0.6)
                fix = f"Did you mean {near[0]}?" if near else f"Known ones: {', '.join(keys)}."
                self._fault((*path, key), "an unknown key", "one of a pools file's", fix)

    def _line(self, path: Path) -> int:
        return self._file.source.find(path)[1]

    def _fault(self, path: Path, found: str, expected: str, fix: str = "") -> None:
        self.faults.append(Fault(self._name, self._line(path), show_path(path), found, expected, fix))


def _plain(value: object) -> object:
    """Numbers as YAML readers give them, without a fraction that isn't there."""
    return int(value) if isinstance(value, float) and value == int(value) else value
