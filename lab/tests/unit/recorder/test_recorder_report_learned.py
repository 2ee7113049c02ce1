"""The report's section on learned placeholders: from the controllers' ConfigMap to page, JSON and
text.
"""

import json
from array import array
from pathlib import Path

import pytest
import yaml

from lab.tests.moments import BEGIN, HOUR
from lab.tests.recorded import empty_store, story_records
from roost.__main__ import main
from roost.commands.headroom_history import as_config_map
from roost_core.placement.headroom_account import Account, LateClass, Week, Why
from roost_core.placement.headroom_history import History

MINUTE_US = 60_000_000
# The recorded story is in the second of these weeks.
WEEK_MINUTES = 7 * 24 * 60
SECOND_WEEK = BEGIN // MINUTE_US - 24 * 60
ACCOUNT = Account(
    weeks=(
        Week(SECOND_WEEK - WEEK_MINUTES, 900, 300, 40.0, 41.0, 100.0, 90.0),
        Week(SECOND_WEEK, 800, 8, 1.5, 31.5, 108.0, 96.0),
    ),
    late_classes=(
        LateClass(BEGIN // MINUTE_US - WEEK_MINUTES, 90, 40, Why.NOT_KNOWN),
        LateClass((BEGIN + HOUR // 2) // MINUTE_US, 60, 8, Why.MORE_CAME),
    ),
)


@pytest.fixture
def database(tmp_path: Path) -> str:
    empty_store(tmp_path).write(story_records(), {})
    return str(tmp_path / "roost.db")


def config_map(tmp_path: Path, account: Account = ACCOUNT) -> str:
    history = History(first=BEGIN // MINUTE_US, levels=array("i", [1, 2]), account=account)
    path = tmp_path / "history.yaml"
    path.write_text(as_config_map({"default": history}, "roost-headroom-history", "hub"))
    return str(path)


def test_weeks_and_late_classes_of_the_period_are_told_with_hours_saved_for_each_node_hour(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["report", "--database", database, "--learned", config_map(tmp_path)]
    assert main([*arguments, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["tables"]
    assert [
        (row["set"], row["starts"], row["late_share"], row["saved_hours"], row["net_node_hours"])
        for row in told["learned_by_week"]
    ] == [("default", 800, 0.01, 30.0, 12.0)]
    assert told["learned_by_week"][0]["saved_a_node_hour"] == 2.5
    assert [(row["people"], row["late"], row["why"]) for row in told["learned_late_classes"]] == [
        (60, 8, "more came")
    ]
    assert main([*arguments, "--format", "text"]) == 0
    assert (
        "Learned placeholders, set default: people waited 30.0 hours less for nodes, at 12.0"
        " node-hours more, 2.5 for each node-hour.\n" in capsys.readouterr().out
    )
    assert main(arguments) == 0
    page = capsys.readouterr().out
    assert "What learned placeholders saved and cost" in page
    assert "more came" in page


def test_a_week_in_which_learning_cost_nothing_has_no_ratio(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    account = Account(weeks=(Week(SECOND_WEEK, 10, 0, 0.0, 1.0, 5.0, 6.0),))
    arguments = ["report", "--database", database, "--learned", config_map(tmp_path, account)]
    assert main([*arguments, "--format", "json"]) == 0
    (week,) = json.loads(capsys.readouterr().out)["tables"]["learned_by_week"]
    assert (week["net_node_hours"], week["saved_a_node_hour"]) == (-1.0, None)
    assert main([*arguments, "--format", "text"]) == 0
    assert "at -1.0 node-hours more.\n" in capsys.readouterr().out


def test_without_a_config_map_nothing_is_told_and_a_faulty_one_is_named(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--database", database, "--format", "text"]) == 0
    assert "Learned placeholders" not in capsys.readouterr().out
    path = config_map(tmp_path)
    body = yaml.safe_load(Path(path).read_text())
    body["data"]["default"] = body["data"]["default"][:50]
    Path(path).write_text(yaml.safe_dump(body))
    assert main(["report", "--database", database, "--learned", path]) != 0
    assert f"--learned: {path}: data.default: " in capsys.readouterr().err
    missing = str(tmp_path / "none.yaml")
    assert main(["report", "--database", database, "--learned", missing]) != 0
    assert f"--learned: found {missing}, which can't be read" in capsys.readouterr().err
