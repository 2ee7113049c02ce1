"""Whether Python of a hub only leaves profiles and choices out of the list that the file holds."""

import textwrap

import pytest

from generator.importing.profile_filters import only_leaves_out

ASSIGNED = "c.KubeSpawner.profile_list = partial(of_user, deepcopy(c.KubeSpawner.profile_list))\n"
IMPORTS = "from copy import deepcopy\nfrom functools import partial\nfrom textwrap import dedent\n"


def _filter(body: str, imports: str = IMPORTS) -> str:
    """A filter with these lines for each profile."""
    lines = textwrap.indent(textwrap.dedent(body), " " * 8)
    return (
        f"{imports}def of_user(listed, spawner):\n    chosen = []\n    for entry in listed:\n"
        f"        profile = deepcopy(entry)\n{lines}\n        chosen.append(profile)\n"
        f"    return chosen\n{ASSIGNED}"
    )


KEPT_CHOICES = """
for option in profile["profile_options"].values():
    kept = {}
    for name, choice in option["choices"].items():
        if choice.get("is_open"):
            kept[name] = choice
    option["choices"] = kept
"""


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        KEPT_CHOICES,
        'del profile["profile_options"]["image"]["unlisted_choice"]',
        'profile["description"] = dedent("Of your group")',
    ],
)
def test_profiles_and_choices_may_be_left_out(body: str) -> None:
    assert only_leaves_out(_filter(body))


@pytest.mark.parametrize(
    "body",
    [
        # Another choice than the file's.
        KEPT_CHOICES.replace("= choice", "= choice | spawner.more"),
        KEPT_CHOICES.replace("= choice", "= spawner.choice"),
        # A choice that was changed before.
        KEPT_CHOICES.replace("if choice", "choice = spawner.changed(choice)\n        if choice", 1),
        # Into a dict that held something.
        KEPT_CHOICES.replace("kept = {}", "kept = {}\n    kept = spawner.choices"),
        # Into the profile itself.
        "for name, value in spawner.user.items():\n    profile[name] = value",
        'profile["kubespawner_override"] = {}',
        'del profile["kubespawner_override"]',
        'del profile["profile_options"]["image"]["choices"]["small"]["kubespawner_override"]',
        "changed(profile)",
        "spawner.profile_list.append(profile)",
    ],
)
def test_what_changes_a_profile_is_seen(body: str) -> None:
    assert not only_leaves_out(_filter(body))


def test_a_function_of_an_unknown_module_may_change_a_profile() -> None:
    imports = IMPORTS.replace("textwrap", "of_the_hub")
    assert not only_leaves_out(_filter("dedent(profile)", imports))
    assert not only_leaves_out("no Python(")
    assert not only_leaves_out("setattr(c.KubeSpawner, 'profile_list', [])\n" + ASSIGNED)
