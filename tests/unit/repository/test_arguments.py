"""What the chart's Deployments pass is what the programs declare."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tools.write_arguments import PROGRAMS, TEMPLATES, macro


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_arguments_in_the_chart_are_those_that_the_program_declares(program: str) -> None:
    assert (TEMPLATES / program / "_arguments.yaml.j2").read_text(encoding="utf-8") == macro(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_program_must_be_given_the_chart_passes(program: str) -> None:
    arguments = macro(program)
    required = [each.metadata for each in fields(PROGRAMS[program]) if each.metadata["settings"].get("required")]
    # The recorder's database comes from the environment, as it may hold a password.
    named = [each["flag"] for each in required if not each["settings"].get("envvar")]
    assert named
    assert all(f"{flag}=" in arguments for flag in named)
