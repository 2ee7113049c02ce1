"""The import knows KubeSpawner's traits by name: all that the installed one has, and what is meant
by a name that is none.
"""

import pytest
from kubespawner import KubeSpawner
from traitlets import Dict, List, Union

from generator.importing.traits import LISTS, NAMES, OLD_NAMES, nearest_trait


def test_the_names_are_those_of_the_installed_kubespawner() -> None:
    assert set(KubeSpawner.class_trait_names(config=True)) == NAMES
    assert all(isinstance(getattr(KubeSpawner, old), property) for old in OLD_NAMES)
    assert {*OLD_NAMES.values()} <= NAMES


def test_lists_are_traits_that_take_both_forms() -> None:
    taken = {
        name: {type(kind) for kind in trait.trait_types}
        for name, trait in KubeSpawner.class_traits().items()
        if isinstance(trait, Union)
    }
    assert all({List, Dict} <= taken[name] for name in LISTS)


@pytest.mark.parametrize(
    ("name", "trait"),
    [
        ("mem_guaranttee", "mem_guarantee"),
        ("memGuarantee", "mem_guarantee"),
        ("extra_tolerations", "tolerations"),
        ("extraTolerations", "tolerations"),
        ("toleration", "tolerations"),
        ("nodeSelector", "node_selector"),
        ("node-selector", "node_selector"),
        ("cpu_gaurantee", "cpu_guarantee"),
        ("extra_ressource_limits", "extra_resource_limits"),
        ("initContainers", "init_containers"),
        ("xyzzy", ""),
    ],
)
def test_a_name_that_is_none_is_near_to_one(name: str, trait: str) -> None:
    assert nearest_trait(name) == trait
