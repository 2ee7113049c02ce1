"""Read histories of headroom: from the controllers' ConfigMap, or from launches."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from generator.faults import UsageError
from roost_core.objects.foreign_yaml import ForeignTextError, load_foreign
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import requested
from roost_core.placement.headroom_history import (
    History,
    HistoryError,
    history_of,
    read_history,
    share_of_text,
    size_in_placeholders,
)
from roost_core.release.bookings import in_range


def read_histories(
    sources: Mapping[str, str], sets: Sequence[Mapping[str, Any]], namespace: str
) -> dict[str, History]:
    """Return the history of each set that learns, by name. Raises UsageError that names the option
    and the fix.

    sources: what each option was given, "": nothing; launches are JSON lines, as `roost records
    export` prints them.
    """
    given = [(option, source) for option, source in sources.items() if source]
    if not given:
        return {}
    option, source = given[0]
    if len(given) > 1:
        second, _ = given[1]
        raise UsageError(f"{second}: found {option} as well, expected one source of history")
    learning = [placeholder_set for placeholder_set in sets if placeholder_set.get("learn")]
    if not learning:
        raise UsageError(
            f"{option}: found values in which no placeholder set has `learn`, expected one that has"
        )
    names = [str(placeholder_set["name"]) for placeholder_set in learning]
    if option == "--history":
        return _kept_histories(source, names)
    if len(learning) > 1:
        raise UsageError(
            f"{option}: found {len(learning)} sets that learn ({', '.join(names)}), expected one:"
            " it doesn't tell whose nodes servers were on. Remove `learn` from the others"
        )
    if option == "--prometheus":
        return {names[0]: _history_of_prometheus(source, namespace)}
    return {names[0]: _history_of_launches(source, learning[0])}


def _history_of_prometheus(source: str, namespace: str) -> History:
    """What Prometheus knows of a hub's servers; notes on it go to stderr."""
    from roost.commands.prometheus import read_usage  # noqa: PLC0415 - loads an HTTP client

    usage = read_usage(source, namespace)
    sys.stderr.write("".join(f"{line}\n" for line in usage.notes))
    # Prometheus knows no sizes: each server counts as one placeholder.
    sessions = [(begin, end, 1.0) for begin, end in usage.sessions]
    return history_of(sessions, usage.minutes_seen)


def _history_of_launches(path: str, placeholder_set: Mapping[str, Any]) -> History:
    """What launches tell, each in placeholders of a set's size."""
    requests = requested(placeholder_set["resources"])
    own_millicores = 1000 * float(parse_quantity(requests.get("cpu") or 0))
    own_memory = float(parse_quantity(requests.get("memory") or 0))
    sessions = [
        (begin, end, size_in_placeholders(millicores, memory, own_millicores, own_memory))
        for begin, end, millicores, memory in _launches(path)
    ]
    return history_of(sessions)


def as_config_map(histories: Mapping[str, History], name: str, namespace: str) -> str:
    """Return the ConfigMap from which the controllers go on, as YAML."""
    most_text = share_of_text(len(histories))
    data = {
        set_name: history.as_text(set_name, most_text) for set_name, history in histories.items()
    }
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }
    return yaml.safe_dump(body, sort_keys=False, width=1_000_000)


def _kept_histories(path: str, names: Sequence[str]) -> dict[str, History]:
    """What the controllers' ConfigMap keeps of these sets, by name; path: a file, or - for stdin.

    Raises UsageError that names the file, the key and the fix.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        body = load_foreign(text)
    except ForeignTextError as error:
        raise UsageError(f"--history: {path}: found {error}, expected a ConfigMap") from None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--history: found {path}, which can't be read ({type(error).__name__})"
        ) from None
    data = body.get("data") if isinstance(body, dict) and body.get("kind") == "ConfigMap" else None
    if not isinstance(data, dict):
        raise UsageError(
            f"--history: found {path} without a ConfigMap that has data, expected the output of"
            " kubectl get configmap RELEASE-roost-headroom-history -o yaml"
        )
    histories = {}
    for name in names:
        if name not in data:
            continue
        try:
            histories[name] = read_history(str(data[name]), set_name=name)
        except HistoryError as error:
            raise UsageError(f"--history: {path}: data.{name}: {error}") from None
    if data and not histories:
        raise UsageError(
            f"--history: {path}: found data of {', '.join(map(str, data))}, expected of a set here:"
            f" {', '.join(names)}"
        )
    return histories


def _moment(timestamp: str) -> float:
    """The Unix time of a date-time.

    Raises ValueError, also for a year that can't be reckoned with.
    """
    if not in_range(timestamp):
        raise ValueError(timestamp)
    return datetime.fromisoformat(timestamp).timestamp()


def _launches(path: str) -> Iterator[tuple[float, float, float, float]]:
    """Yield begin, end, CPU in millicores and memory in bytes of each launch."""
    now = time.time()
    try:
        with sys.stdin if path == "-" else Path(path).open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    pod = json.loads(line)
                    begin = _moment(pod["timestamp"])
                    end = now if pod["seconds"] is None else begin + pod["seconds"]
                    yield (
                        begin,
                        end,
                        float(pod.get("cpu_millicores") or 0),
                        float(pod.get("memory_bytes") or 0),
                    )
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    raise UsageError(
                        f"--launches: {path}:{number}: found {line.strip()[:60]!r}, expected a line"
                        " of `roost records export`: JSON with timestamp and seconds"
                    ) from None
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"--launches: found {path}, which can't be read ({type(error).__name__})"
        ) from None
