"""A hundred thousand damaged lines: none stops an import, and each is counted, as used or by its
reason.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from lab.tests.history import BEGIN, as_lines, import_texts, morning, user_pod
from lab.tests.recorded import empty_store
from roost_lab.report.formats import to_json
from roost_lab.report.gather import gather

SAMPLES = Path(__file__).parents[2] / "data" / "history"
LINES = 25_000
ODD: list[Any] = [
    *(None, "", "\0", "\ud800", "x" * 1000, 0, -1, 10**30, 1.5, True, [], {}, [1], {"a": {}}),
    *("2026-13-45T99:99:99Z", "9999-12-31T23:59:59Z", "1969-01-01T00:00:00Z"),
    'Successfully pulled image "i" in 99999999999999999h. Image size: ' + "9" * 5000 + " bytes",
    "0/" + "9" * 5000 + " nodes are available: " + "9" * 5000 + " Insufficient cpu.",
    "Preempted by pod 00000000-0000-0000-0000-000000000000 on node " + "n" * 300,
    *("Pod", "Node", "Scheduled", "Pulled", "Killing", "audit.k8s.io/v1"),
]


def real_lines() -> list[str]:
    lines = as_lines([*morning(3).items, user_pod("jupyter-dan", BEGIN)]).splitlines()
    for name in ("audit.jsonl", "fluent-bit.jsonl", "loki-logcli.jsonl", "container-log.txt"):
        lines += (SAMPLES / name).read_text().splitlines()
    return lines


def spoil_value(value: Any, chance: random.Random) -> Any:
    """The same value with one odd place in it."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {other: inner for other, inner in value.items() if other != key}
        return {**value, key: spoil_value(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [*value[:at], spoil_value(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD)


def spoil_text(line: bytes, chance: random.Random) -> bytes:
    """The same bytes with some changed, cut off, doubled or of another line."""
    at, other = sorted((chance.randrange(len(line)), chance.randrange(len(line))))
    match chance.randrange(4):
        case 0:
            return line[:at]
        case 1:
            return line[:at] + chance.randbytes(other - at if other - at < 20 else 3) + line[other:]
        case 2:
            return line[:other] + line[at:]
        case _:
            return line[:at] + line[other:]


def spoilt(line: str, chance: random.Random) -> bytes:
    if chance.random() < 0.05:
        return line.encode()
    start = line.find("{")
    if chance.random() < 0.6:
        return (line[:start] + json.dumps(spoil_value(json.loads(line[start:]), chance))).encode()
    return spoil_text(line.encode(), chance).replace(b"\n", b" ").replace(b"\r", b" ")


@pytest.mark.parametrize("seed", range(4))
def test_no_line_stops_an_import_and_each_is_counted(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    real = real_lines()
    # The first one says that these are lines.
    lines = [real[0].encode(), *(spoilt(chance.choice(real), chance) for _ in range(LINES - 1))]
    blank = sum(not line.strip() for line in lines)
    store = empty_store(tmp_path)
    counts = import_texts(store, tmp_path, b"\n".join(lines)).counts
    assert counts.used.total() + counts.skipped.total() == len(lines) - blank
    assert counts.used.total() > LINES // 20
    assert set(counts.first) == set(counts.skipped)
    assert len(counts.skipped) < 100
    # What was stored can be read.
    assert json.loads(to_json(gather(store)))
