"""`roost import` ends in plain words: what Roost will do for this hub, and what not; and in what
its lint says.
"""

from pathlib import Path

import pytest

from generator.importing.summary import summary_of
from roost.__main__ import main
from tests.unit.generator.imported_hubs import imported

LEARNING = {"name": "a", "learn": {"max": 3}}
USUAL = "scheduling: {userPlaceholder: {replicas: 4}}\nsingleuser: {image: {name: a/b, tag: '1'}}\n"


def test_the_lints_warnings_are_shown_with_the_line_of_what_was_written() -> None:
    result = imported(USUAL)
    assert result.warnings == []
    profiled = imported(
        USUAL.replace(
            "tag: '1'}", "tag: '1'}, profileList: [{kubespawner_override: {image: 'c:1'}}]"
        )
        + "prePuller: {pullProfileListImages: false}"
    )
    (warning,) = profiled.warnings
    assert "imported values:" in str(warning)
    assert "not pulled to any node" in str(warning)
    assert str(warning) in profiled.report()


def test_the_command_says_it_on_stderr_and_takes_a_hubs_key(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "hub.yaml"
    text = "one: {jupyterhub: {singleuser: {}}}\ntwo: {jupyterhub: {singleuser: {}}}\n"
    path.write_text(text)
    assert main(["import", str(path)]) == 1
    assert "found 2 hubs" in capsys.readouterr().err
    assert main(["import", str(path), "--hub", "two.jupyterhub"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("What Roost will do for this hub:")
    # And three of the first week.
    assert len(told.err.splitlines()) == 15
    assert main(["import", str(path), "--hub", "two.jupyterhub", "--details"]) == 0
    assert "What it won't:" in capsys.readouterr().err
    assert told.out.startswith("# Made by `roost import`")


@pytest.mark.parametrize("placeholders", [[], [LEARNING]])
def test_builds_without_a_class_are_not_spoken_of(placeholders: list[object]) -> None:
    values = {"podClasses": {"build": None}, "placeholders": placeholders}
    told = summary_of(values, builds_unknown="hub.extraConfig.builds")
    assert not any("hub.extraConfig.builds" in line for line in (*told.will, *told.wont))
