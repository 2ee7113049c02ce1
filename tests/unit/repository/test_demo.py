"""`make demo` runs from end to end, with the real programs as processes."""

import sqlite3
from pathlib import Path

import pytest

from tools import demo


@pytest.mark.slow
def test_the_demo_places_three_pods_records_them_and_leaves_two_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "PAGES", tmp_path)
    assert demo.main() == 0, capsys.readouterr()
    for page in ("report.html", "replay.html"):
        assert "</html>" in (tmp_path / page).read_text(encoding="utf-8")
    with sqlite3.connect(tmp_path / "demo.db") as record:
        bindings = "SELECT pod_class, node_name FROM decision JOIN pod ON uid = pod_uid WHERE kind = 'bind'"
        nodes = dict(record.execute(f"{bindings} AND pod_class <> ''").fetchall())
    assert nodes.keys() == set(demo.CLASSES)
    assert (nodes["user"], nodes["placeholder"]) == (demo.USER_NODE, demo.PLACEHOLDER_NODE)
    assert "It landed on" in capsys.readouterr().out
