"""`roost validate` names every node that users may use and that no puller brings their image to, with the fix."""

import pytest

from tests.unit.generator.linted import found, table


@pytest.mark.parametrize(("text", "words"), table("reach-warned"))
def test_a_way_to_a_cold_start_is_named_with_its_fix_and_nothing_beside(text: str, words: str) -> None:
    (fault,) = found(text)
    assert words in str(fault)
    assert fault.severity == "warning"
    assert fault.fix
