"""Each room of the product has a budget of lines; `make check` holds it."""

from pathlib import Path

from tools.check_budgets import KEY, faults, rooms


def test_a_room_over_its_budget_without_one_or_gone_is_named() -> None:
    over, without, gone = faults({"webhook/rules": 11, "webhook": 50}, {"webhook/rules": 10, "webhook/hubs": 3})
    assert over.startswith(f"{KEY}.webhook/rules: found 11 lines of Python, expected at most 10. ")
    assert without == f"{KEY}: found no budget for webhook, expected one. Write 55."
    assert gone == f"{KEY}.webhook/hubs: found no such room. Remove it."
    assert faults({"webhook": 5}, {"webhook": 5}) == []


def test_a_rooms_files_are_those_of_its_folder_and_below(tmp_path: Path) -> None:
    for name in ("webhook/main.py", "webhook/rules/gate.py", "webhook/rules/deep/more.py", "webhook/rules/notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = {room: {file.name for file in files} for room, files in rooms(tmp_path).items()}
    assert found == {"webhook": {"main.py"}, "webhook/rules": {"more.py", "gate.py"}}
