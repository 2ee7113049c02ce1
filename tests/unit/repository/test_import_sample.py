"""docs/beside-zero-to-jupyterhub.md shows what `roost import` writes."""

import re

from generator.importing.importer import import_layers
from roost.commands.hub_trial import try_import
from tools.root import ROOT

PAGE = ROOT / "docs" / "beside-zero-to-jupyterhub.md"


def test_the_sample_is_what_roost_import_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    hub, values = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[:2]
    shown = page.partition("$ roost import hub.yaml --hub-release hub > values.yaml\n")[
        2
    ].partition("```")[0]
    result = import_layers([("hub.yaml", hub)])
    try_import(result)
    assert values == result.to_yaml()
    # The page leaves out the end of long notes.
    pattern = re.escape(shown.rstrip()).replace(re.escape("[…]"), "[^\n]*")
    report = result.report(details=False)
    assert re.fullmatch(pattern, report.rstrip()), report
