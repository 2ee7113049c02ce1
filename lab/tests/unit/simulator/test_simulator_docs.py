"""lab/docs/simulator.md says what the code does."""

import pytest

from tools.write_simulator_tables import PAGE, WRITER, main, page


def test_its_tables_are_fresh() -> None:
    assert main(["--check"]) == 0, f"run {WRITER}"


def test_a_page_without_a_place_for_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place for assumptions"):
        page(PAGE.read_text(encoding="utf-8").replace("<!-- end of assumptions -->", ""))
