"""`roost headroom`: what it prints."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.__main__ import main
from roost_core.placement.headroom_history import read_history
from tests.builders import default_values
from tests.recorded_data import object_of, printed, rows

LECTURES, EXAM = object_of("windows")


def write_values(folder: Path, *sets: dict[str, Any]) -> str:
    default = default_values()["placeholders"][0]
    path = folder / "values.json"
    path.write_text(json.dumps({"placeholders": [{**default, **one} for one in sets]}))
    return str(path)


def run_headroom(*arguments: str) -> int:
    return main(["headroom", *arguments])


def test_each_change_is_printed_in_local_time_with_placeholder_hours_and_node_hours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = write_values(tmp_path, {"windows": [LECTURES, EXAM]})
    code = run_headroom("-f", values, "--at", "2026-10-06T07:00", "--days", "2", "--per-node", "14")
    assert code == 0
    # 30 for 20 h, 50 more for 2.5 h, 3 for 28 h; nodes: 3 for 17.5 h, 6 for 2.5 h, 1 for 28 h.
    assert capsys.readouterr().out == printed("headroom-windows")


def test_a_set_without_windows_has_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = write_values(tmp_path, {"name": "gpu", "replicas": 0})
    assert run_headroom("-f", values, "--at", "2026-10-06T07:00Z") == 0
    assert capsys.readouterr().out == printed("headroom-without-windows")


@pytest.mark.parametrize(("settings", "said"), rows("commands/windows-without-effect"))
def test_windows_that_nobody_keeps_are_said_to_have_no_effect(
    settings: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = write_values(tmp_path, {"windows": [LECTURES]}, {"name": "plain"})
    assert run_headroom("-f", values, *(f"--set={setting}" for setting in settings)) == 0
    assert capsys.readouterr().out.count(f"windows without effect: {said}") == 1


@pytest.mark.parametrize(("arguments", "said"), rows("commands/headroom-usage"))
def test_wrong_usage_is_said_and_is_exit_code_2(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_headroom(*arguments) == 2
    assert said in capsys.readouterr().err


def test_faulty_windows_are_exit_code_1_and_name_their_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = write_values(tmp_path, {"windows": [{**LECTURES, "start": "0 25 * * *"}]})
    assert run_headroom("-f", values) == 1
    assert "placeholders[0].windows[0].start" in capsys.readouterr().err


# Learned numbers

LEARN = {"min": 1, "max": 60, "timeZone": "UTC"}
# Monday, 2026-10-05, 00:00 UTC.
MONDAY = 1_791_158_400


def _trace(folder: Path, weeks: int = 3, *, today: int = 0) -> str:
    """Somebody each hour; forty people on Mondays at 9:10; today so many, and somebody at 9:13."""
    lines = []
    for hour in range(168 * weeks + 10 * bool(today)):
        begins = [MONDAY - 168 * weeks * 3600 + hour * 3600 + 60]
        if hour % 168 == 9:
            people = 40 if hour < 168 * weeks else today
            begins += [begins[0] + 540 + person for person in range(people)] + [begins[0] + 720] * (
                people == today
            )
        for begin in begins:
            stamp = datetime.fromtimestamp(begin, UTC).isoformat().replace("+00:00", "Z")
            launch = {
                "timestamp": stamp,
                "schema": "roost.hub.jupyter.org/launch",
                "version": 2,
                "class": "user",
            }
            lines.append(
                {
                    **launch,
                    "image": "nb:1",
                    "seconds": 1200,
                    "ready_seconds": 0,
                    "status": "deleted",
                }
            )
    path = folder / "launches.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


def test_learned_numbers_are_forecast_from_a_trace_and_a_window_is_not_undercut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evening = {
        "name": "evening",
        "replicas": 5,
        "timeZone": "UTC",
        "start": "0 20 * * *",
        "end": "0 21 * * *",
    }
    values = write_values(tmp_path, {"replicas": 0, "learn": LEARN, "windows": [evening]})
    code = run_headroom(
        "-f", values, "--launches", _trace(tmp_path), "--at", "2026-10-05T06:00Z", "--days", "1"
    )
    assert code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("default: learned from 21 days")
    at = {line[17:22]: line[28:].split(maxsplit=1) for line in lines[2:-1]}
    assert at["06:00"] == ["1", "as learned"]
    # From a boot time before they come.
    assert int(at["09:00"][0]) >= 30
    assert at["09:15"][0] == "1"
    assert at["20:00"] == ["5", "evening"]
    assert at["21:00"] == ["1", "as learned"]


def test_a_printed_config_map_gives_the_same_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = write_values(tmp_path, {"learn": LEARN})
    assert (
        run_headroom(
            "-f",
            values,
            "--release",
            "lab",
            "-n",
            "n",
            "--launches",
            _trace(tmp_path),
            "--config-map",
        )
        == 0
    )
    text = capsys.readouterr().out
    body = yaml.safe_load(text)
    assert body["metadata"] == {"name": "lab-roost-headroom-history", "namespace": "n"}
    assert read_history(body["data"]["default"]).seen_minutes > 20 * 1440
    (tmp_path / "history.yaml").write_text(text)
    from_monday = ("--at", "2026-10-05T06:00Z", "--days", "1")
    assert (
        run_headroom("-f", values, "--history", str(tmp_path / "history.yaml"), *from_monday) == 0
    )
    forecast = capsys.readouterr().out
    assert run_headroom("-f", values, "--launches", _trace(tmp_path), *from_monday) == 0
    assert capsys.readouterr().out == forecast
    assert (
        run_headroom(
            "-f", values, "--launches", _trace(tmp_path), "--explain", "--at", "2026-10-05T09:06Z"
        )
        == 0
    )
    assert (
        "  on the last 3 Mon, 40 to 40 more people came from 09:06 to 09:12\n"
        in capsys.readouterr().out
    )
    begun = ("--launches", _trace(tmp_path, today=25), "--explain", "--at", "2026-10-05T09:12Z")
    assert run_headroom("-f", values, *begun) == 0
    have_come = "  on the last 3 Mon, 40 to 40 more people came from 09:07 to 09:18; 25 have come\n"
    assert have_come in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "text"), rows("commands/headroom-histories"))
def test_faults_of_a_history_name_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    assert run_headroom("-f", write_values(tmp_path, {"learn": LEARN}), *arguments) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(("content", "text"), rows("commands/no-histories"))
def test_a_config_map_that_holds_no_history_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, text: str
) -> None:
    (tmp_path / "history.yaml").write_text(content)
    assert (
        run_headroom(
            "-f",
            write_values(tmp_path, {"learn": LEARN}),
            "--history",
            str(tmp_path / "history.yaml"),
        )
        == 2
    )
    assert text in capsys.readouterr().err


def test_no_launch_takes_nothing_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "launches.jsonl").write_text("")
    given = ("--launches", str(tmp_path / "launches.jsonl"), "--config-map")
    assert run_headroom("-f", write_values(tmp_path, {"learn": LEARN}), *given) == 2
    printed = capsys.readouterr()
    assert (printed.out, "found no server in the source" in printed.err) == ("", True)


def test_a_launch_counts_in_the_size_of_a_placeholder_that_only_has_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = {"timestamp": "2026-09-14T00:00:00Z", "seconds": 600, "memory_bytes": 4 * 2**30}
    (tmp_path / "launches.jsonl").write_text(f"\ufeff{json.dumps(launch)}\n")
    values = write_values(tmp_path, {"learn": LEARN, "resources": {"limits": {"memory": "1Gi"}}})
    assert (
        run_headroom("-f", values, "--launches", str(tmp_path / "launches.jsonl"), "--config-map")
        == 0
    )
    history = read_history(yaml.safe_load(capsys.readouterr().out)["data"]["default"])
    assert history.at(history.first) == 4


def test_a_line_that_is_no_launch_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, good = (
        str(tmp_path / "launches.jsonl"),
        {"timestamp": "2026-09-14T00:01:00Z", "seconds": 60},
    )
    changes = (
        {"timestamp": None},
        {"timestamp": "0001-01-01T00:00:00Z"},
        {"memory_bytes": "1G"},
        {"seconds": "5"},
    )
    for line in (
        '{"seconds": 5}',
        "no JSON",
        *(json.dumps({**good, **change}) for change in changes),
    ):
        Path(file).write_text(f"{json.dumps(good)}\n{line}\n")
        assert run_headroom("-f", write_values(tmp_path, {"learn": LEARN}), "--launches", file) == 2
        assert f"--launches: {file}:2: found " in capsys.readouterr().err


def test_a_history_for_sets_that_do_not_learn_or_for_several_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_headroom("-f", write_values(tmp_path, {}), "--launches", _trace(tmp_path)) == 2
    assert "no placeholder set has `learn`" in capsys.readouterr().err
    both = write_values(tmp_path, {"learn": LEARN}, {"name": "gpu", "learn": LEARN})
    assert run_headroom("-f", both, "--launches", _trace(tmp_path)) == 2
    assert "found 2 sets that learn (default, gpu), expected one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        (
            "20",
            (
                "  quotas: 0 of 30 at most: ResourceQuota team allows 20 pods, others take 3, and"
                " 30 people may come; for all placeholders ask for 63\n"
            ),
        ),
        ("63", "  quotas: room for all 30\n"),
    ],
)
def test_what_a_quota_leaves_is_said(
    pods: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = write_values(tmp_path, {"windows": [LECTURES]})
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": {"pods": pods}},
        "status": {"used": {"pods": "3"}},
    }
    file = tmp_path / "quota.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [quota]}))
    at = ("--at", "2026-10-06T07:00", "--days", "2")
    assert run_headroom("-f", values, *at, "--quotas", str(file)) == 0
    assert capsys.readouterr().out.endswith(said)
