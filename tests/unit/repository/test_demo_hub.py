"""What `make demo HUB=hub.yaml` takes from a hub's values, and says of its day."""

import random
import re
from pathlib import Path

import pytest

from generator.faults import ValuesError
from roost_lab.simulator.setup.checks import AssumptionsError
from tools import demo
from tools.demo_hub import play_hub, read_hub

DATA = Path(__file__).resolve().parents[2] / "data"


def test_every_hub_is_read_or_refused_with_a_fault() -> None:
    files = [path for name in ("hubs", "public-hubs") for path in (DATA / name).rglob("*.y*ml")]
    read = 0
    for file in files:
        try:
            hub = read_hub(file)
        except (ValuesError, AssumptionsError):
            continue
        read += 1
        assert hub.memory_bytes > 0
        assert hub.cpu_millicores > 0
        assert hub.placeholders >= 0
    assert read > 0.8 * len(files)


@pytest.mark.parametrize("seed", range(2))
def test_the_day_is_played_with_the_hubs_own_sizes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    gib, placeholders = chance.randrange(1, 5), chance.choice([0, 12])
    file = tmp_path / "config.yaml"
    file.write_text(
        f"singleuser: {{image: {{name: quay.io/me/lab, tag: v1}}, memory: {{guarantee: {gib}G}}}}\n"
        f"scheduling: {{userPlaceholder: {{replicas: {placeholders}}}}}\n"
    )
    hub = read_hub(file)
    assert (hub.image, hub.memory_bytes, hub.placeholders) == (
        "quay.io/me/lab:v1",
        gib * 2**30,
        placeholders,
    )
    page = tmp_path / "hub.html"
    sentence, *crowds = play_hub(hub, tmp_path / "records", page)
    found = re.match(
        r"With Roost, (\d+|none) of \d+ starts? takes? longer than 30 s instead", sentence
    )
    assert found, sentence
    for side in ("Your hub today", "With Roost"):
        assert crowds[crowds.index(side) + 1].startswith("  10:00: 1")
    assert page.stat().st_size < 2_000_000


def test_a_file_that_is_no_hubs_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("ingress: {enabled: true}\n")
    assert demo.main(str(file)) == 1
    assert str(file) in capsys.readouterr().err
    assert demo.main(str(tmp_path / "none.yaml")) == 1
