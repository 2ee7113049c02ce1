"""Write templates/<program>/_arguments.yaml.j2: what the chart's Deployments pass, as the programs'
options declare it.

.venv/bin/python -m tools.write_arguments            write them
.venv/bin/python -m tools.write_arguments --check    exit 1 unless they are fresh
"""

from __future__ import annotations

import sys
from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING, Final

from roost.controllers.controllers_options import ControllersOptions
from roost.seating.seating_options import SeatingOptions
from roost_lab.recorder.options import RecorderOptions
from tools.generated_file import write_or_check
from tools.root import ROOT
from webhook.webhook_options import WebhookOptions

if TYPE_CHECKING:
    from dataclasses import Field

TEMPLATES: Final = ROOT / "templates"
WRITER: Final = "python -m tools.write_arguments"
PROGRAMS: Final = {
    "webhook": WebhookOptions,
    "controllers": ControllersOptions,
    "recorder": RecorderOptions,
    "seating": SeatingOptions,
}


def macro(program: str) -> str:
    """The file of one program: a macro of its arguments, one item of a YAML list each."""
    kind = PROGRAMS[program]
    passed = [
        field for field in fields(kind) if field.metadata["chart"] or field.metadata["chart_if"]
    ]
    lines = [f"{{# Written by {WRITER} from {kind.__module__}: edit that module. #}}"]
    lines.append(f"{{% macro {program}_arguments() %}}")
    for condition, options in groupby(passed, key=lambda field: str(field.metadata["chart_if"])):
        arguments = map(_argument, options)
        lines += [f"{{% if {condition} %}}", *arguments, "{% endif %}"] if condition else arguments
    return "\n".join([*lines, "{%- endmacro %}"]) + "\n"


def main(arguments: list[str]) -> int:
    """Write the files, or check them."""
    files = ((TEMPLATES / program / "_arguments.yaml.j2", macro(program)) for program in PROGRAMS)
    return write_or_check(files, arguments, WRITER)


def _argument(option: Field[object]) -> str:
    flag = option.metadata["flag"]
    value = option.metadata["chart"]
    return f'- {{{{ ("{flag}=" ~ {value}) | to_json }}}}' if value else f"- {flag}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
