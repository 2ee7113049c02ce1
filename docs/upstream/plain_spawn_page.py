"""Lines for `hub.extraConfig`: the spawn page says in plain words, and once, what the scheduler and
the autoscaler tell as warnings. All other Events stay: docs/start-notices.md.
"""


def _speak_plainly() -> None:
    from collections.abc import AsyncIterator, Callable  # noqa: PLC0415 - hub.extraConfig shares its names
    from typing import Any  # noqa: PLC0415

    from kubespawner import KubeSpawner  # noqa: PLC0415

    no_room = "No node has room for your server yet."
    plain = {
        "FailedScheduling": no_room,
        "NotTriggerScaleUp": no_room,
        "TriggeredScaleUp": "A new node is being started for your server.",
    }
    progress: Callable[[KubeSpawner], AsyncIterator[dict[str, Any]]] = KubeSpawner.progress

    async def plain_progress(self: KubeSpawner) -> AsyncIterator[dict[str, Any]]:
        said = set()
        async for shown in progress(self):
            event = shown.get("raw_event") or {}
            text = plain.get(str(event.get("reason")))
            if text in said:
                continue
            if text is None:
                yield shown
                continue
            said.add(text)
            when = event.get("lastTimestamp") or event.get("eventTime")
            # Later versions also show it as HTML.
            kept = {key: value for key, value in shown.items() if key != "html_message"}
            yield {**kept, "message": f"{when} [Normal] {text}"}

    KubeSpawner.progress = plain_progress


_speak_plainly()
