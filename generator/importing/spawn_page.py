"""Lines for a hub's own values, so that its spawn page says in plain words what the scheduler and the autoscaler do.

Start notices say the rest (docs/start-notices.md). KubeSpawner up to 7.1 shows Events as Kubernetes words them and has
no setting for that, hence `hub.extraConfig`; its slow_spawn_message exists since 7.1.
"""

from __future__ import annotations

from textwrap import indent
from typing import Final

from generator.importing.printing import print_yaml, printable
from generator.importing.source import HubSection, child

# Runs in the hub, after its configuration. It wraps the method instead of naming a class of its own, because BinderHub
# and others set a class derived from KubeSpawner.
PLAIN_EVENTS: Final = """\
# Say in plain words, and once, what the scheduler and the autoscaler tell as warnings. All other Events stay.
from kubespawner import KubeSpawner

def roost_plain_words(progress):
    no_room = "No node has room for your server yet."
    plain = {
        "FailedScheduling": no_room,
        "NotTriggerScaleUp": no_room,
        "TriggeredScaleUp": "A new node is being started for your server.",
    }

    async def plain_progress(self):
        said = set()
        async for shown in progress(self):
            event = shown.get("raw_event") or {}
            text = plain.get(event.get("reason"))
            if text in said:
                continue
            if text:
                said.add(text)
                when = event.get("lastTimestamp") or event.get("eventTime")
                # Later versions also show it as HTML.
                shown = {key: value for key, value in shown.items() if key != "html_message"}
                shown["message"] = f"{when} [Normal] {text}"
            yield shown

    return plain_progress

KubeSpawner.progress = roost_plain_words(KubeSpawner.progress)
"""

# Its default says every five seconds that the launch takes longer than expected, whatever a notice says is left.
_SLOW_SPAWN: Final = {
    "slow_spawn_message_threshold": "60",
    "slow_spawn_message_frequency": "60",
    "slow_spawn_message": '"Your server is still starting after {seconds} seconds. See above what it waits for."',
}

_HEAD: Final = """\
# Made by `roost import --spawn-page` from {filename}: for the hub's own values, not for Roost's.
# The spawn page then says in plain words what it waits for, beside Roost's start notices.
"""


def spawn_page_values(hub: HubSection, filename: str) -> str:
    """The lines as a values file of the hub's chart; what the hub sets of KubeSpawner's itself is left out."""
    own = child(hub.data, "hub", "config", "KubeSpawner")
    lines = [f"{key}: {value}" for key, value in _SLOW_SPAWN.items() if child(own, key) is None]
    text = "hub:\n"
    if lines:
        text += "  config:\n    KubeSpawner:\n"
        text += "      # Known since KubeSpawner 7.1; earlier ones say in the hub's log that they don't know these.\n"
        text += "".join(f"      {line}\n" for line in lines)
    text += "  extraConfig:\n    roost-spawn-page: |\n" + indent(PLAIN_EVENTS, " " * 6)
    for key in reversed(hub.path):
        text = print_yaml({key: None}, {}).replace(" null", "") + indent(text, "  ")
    return _HEAD.format(filename=printable(filename)) + text


def spawn_page_note(hub: HubSection) -> str:
    """What the report of an import says of the spawn page."""
    if child(hub.data, "hub", "config", "KubeSpawner", "events_enabled") is False:
        key = hub.show("hub.config.KubeSpawner.events_enabled")
        return f"{key} is false: the spawn page shows no Events, so nobody reads Roost's start notices there."
    return (
        "The same command with --spawn-page prints lines for the hub's values: the scheduler's warnings in plain words."
    )
