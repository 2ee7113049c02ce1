"""Planners of a controller, made from release.json as the program makes them."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from roost.controllers.contract.actions import Action
from roost.controllers.contract.planner import Controller, Planner
from roost.controllers.contract.release import ReleaseDocument
from roost_core.release.reader import Reader

A = TypeVar("A", bound="Action")


def planner_from(controller: Controller[Any, Any], document: Mapping[str, Any]) -> Planner[Any]:
    """The planner; the document must be without faults, and give it something to do."""
    read = Reader()
    planner = controller.planner(ReleaseDocument(read, document, None, 36))
    assert not read.faults, [str(fault) for fault in read.faults]
    assert planner is not None
    return planner


def faults_of(controller: Controller[Any, Any], document: Mapping[str, Any]) -> list[str]:
    """Keys of the faults that the controller finds in a document."""
    read = Reader()
    controller.planner(ReleaseDocument(read, document, None, 36))
    return [fault.key for fault in read.faults]


def only(kind: type[A], actions: Iterable[Action]) -> A:
    """The only action, which is of this kind."""
    (found,) = actions
    assert isinstance(found, kind)
    return found
