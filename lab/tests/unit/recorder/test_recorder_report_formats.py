from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from lab.tests.recorded import empty_store, story_records
from roost.__main__ import main
from roost_lab.report.formats import to_csv, to_json
from roost_lab.report.gather import gather

if TYPE_CHECKING:
    from pathlib import Path

    from roost_lab.recorder.store.database import Store
    from roost_lab.report.subject import Report


def test_csv_has_each_cell_of_the_json(report: Report) -> None:
    document = json.loads(to_json(report))
    sheets = {name: list(csv.DictReader(io.StringIO(text))) for name, text in to_csv(report).items()}
    expected = {
        name: [{column: "" if cell is None else str(cell) for column, cell in row.items()} for row in rows]
        for name, rows in document["tables"].items()
    }
    assert sheets == expected
    assert document["since"] == "2027-01-15T08:00:00Z"


def test_an_empty_database_gives_tables_without_rows(tmp_path: Path) -> None:
    report = gather(empty_store(tmp_path))
    assert json.loads(to_json(report))["tables"]["starts_by_image"] == []
    assert to_csv(report)["gaps"] == "kind,from,to,seconds,why\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--since", "yesterday"], "yesterday: expected a time such as"),
        (["--until", "7d"], "7d: expected a time such as"),
        (["--since", "2026-11-02", "--until", "2026-11-01"], "expected a time after --since 2026-11-02"),
        (["--format", "pdf"], "pdf"),
    ],
)
def test_times_that_can_not_be_read_are_wrong_usage(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--database", str(tmp_path / "roost.db"), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_database_of_something_else_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.db"
    path.touch()
    assert main(["report", "--database", str(path)]) == 1
    assert "no recorder has written to it" in capsys.readouterr().err


def test_the_command_writes_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store: Store = empty_store(tmp_path)
    store.write(story_records(), {})
    database = ["report", "--database", str(tmp_path / "roost.db")]
    page = tmp_path / "report.html"
    assert main([*database, "--since", "2027-01-15T08:00", "--output", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert capsys.readouterr().out == ""
    assert main([*database, "--format", "json"]) == 0
    assert capsys.readouterr().out.startswith("{")
    folder = tmp_path / "sheets" / "week"
    assert main([*database, "--format", "csv", "--output", str(folder)]) == 0
    assert (folder / "starts_by_image.csv").read_text(encoding="utf-8").startswith("image,phase,pods,p50_seconds")
    assert main([*database, "--format", "csv"]) == 2
    assert "name a folder for them, --output FOLDER" in capsys.readouterr().err
    assert main([*database, "--format", "csv", "--output", str(page)]) == 1
    assert "report.html: File exists" in capsys.readouterr().err
    assert main([*database, "--output", str(tmp_path / "none" / "report.html")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
