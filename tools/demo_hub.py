"""Play the demo's day of classes on a hub's own values, for `make demo HUB=hub.yaml`.

From the values come the default image, what a user's pod requests, and how many placeholders the
hub keeps. Made up are the people who come, the nodes, and how long they take to boot and to pull.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks import never_worse
from benchmarks.hub_scenarios import Scenario
from benchmarks.term_playing import SET_NAME
from generator.importing.importer import import_layers
from generator.render.managed_images import named_image
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.quantities import parse_quantity
from roost_core.placement.headroom_history import history_of
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import make_assumptions
from tools.demo_replay import record_day, the_day, write_sides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from roost_lab.traces.attempt import Attempt

# Of a hub that names no image.
IMAGE: Final = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"
SIDES: Final = ("Your hub today", "With Roost")


@dataclass(frozen=True)
class Hub:
    """What the demo takes from a hub's values."""

    # Placeholders that it keeps today.
    placeholders: int
    # Its default image, as pods name it.
    image: str
    cpu_millicores: int
    memory_bytes: int

    @property
    def values(self) -> Mapping[str, Any]:
        """This much of it, as zero-to-jupyterhub's values."""
        name, _, tag = self.image.rpartition(":")
        return {
            "singleuser": {
                "image": {"name": name, "tag": tag},
                "cpu": {"guarantee": self.cpu_millicores / 1000},
                "memory": {"guarantee": self.memory_bytes},
            }
        }

    @property
    def about(self) -> str:
        """What was taken, in a sentence."""
        kept = f"{self.placeholders} placeholders" if self.placeholders else "no placeholders"
        size = f"{self.cpu_millicores / 1000:g} CPU and {self.memory_bytes / 2**30:.1f} GiB"
        return f"{self.image}, {size} for each user, {kept} today"


def read_hub(file: Path) -> Hub:
    """Read a hub's values.

    Raises OSError, ValuesError, and AssumptionsError for users that no node takes.
    """
    text = file.read_text(encoding="utf-8")
    imported: Any = import_layers([(str(file), text)]).values
    # A BinderHub may have none.
    sets: list[dict[str, Any]] = list(imported.get("placeholders", ()))
    first = sets[0] if sets else {}
    requests = first.get("resources", {}).get("requests", {})
    usual = Assumptions()
    cpu = parse_quantity(requests["cpu"]) if "cpu" in requests else None
    memory = parse_quantity(requests["memory"]) if "memory" in requests else None
    image = named_image(imported.get("singleuser", {}).get("image"))
    hub = Hub(
        placeholders=int(first.get("replicas", 0)),
        image=normalise_reference(image) if image else IMAGE,
        cpu_millicores=usual.user_cpu_millicores if cpu is None else max(1, int(cpu * 1000)),
        memory_bytes=usual.user_memory_bytes if memory is None else int(memory),
    )
    make_assumptions(_sizes(hub), str(file))
    return hub


def _sizes(hub: Hub) -> dict[str, Any]:
    return {"user_cpu_millicores": hub.cpu_millicores, "user_memory_bytes": hub.memory_bytes}


def play_hub(hub: Hub, folder: Path, page: Path) -> list[str]:
    """Play the day with the hub as it is and with Roost, and write the page. What comes of it, in
    a sentence, and what each side's classes wait.
    """
    before, day = the_day()
    before, day = _on(hub, before), _on(hub, day)
    sessions = [
        (start.moment, start.moment + (start.session_seconds or 0), 1.0) for start in before
    ]
    scenario = Scenario(name="demo", about="", launches=_none, hub=hub.values, world=_sizes(hub))
    assumed = make_assumptions(_sizes(hub), "demo")
    folder.mkdir(parents=True, exist_ok=True)
    stores = []
    for arm in (never_worse.HUB, never_worse.IMPORTED):
        policy = never_worse.policy_of(scenario, arm, hub.placeholders, "")
        histories = {}
        if arm == never_worse.IMPORTED:
            histories = {SET_NAME: history_of(sessions).as_text()}
        file = folder / f"{arm.partition(',')[0]}.db"
        stores.append(record_day(file, policy, histories, day, assumed))
    told = write_sides(stores, SIDES, page)
    lines = [told["sentence"]]
    for side, course in zip(SIDES, told["courses"], strict=True):
        lines += ["", side, *(f"  {crowd['text']}" for crowd in course["crowds"])]
    return lines


def _none(_seed: int, _days: float) -> Sequence[Attempt]:
    return ()


def _on(hub: Hub, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The same people, with the hub's image and sizes."""
    return [
        attempt._replace(
            image=hub.image, cpu_millicores=hub.cpu_millicores, memory_bytes=hub.memory_bytes
        )
        for attempt in attempts
    ]
