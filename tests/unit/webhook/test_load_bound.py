"""The bound on a home's builds counts the nodes that a build may use, and follows them."""

from dataclasses import replace

from roost_core.objects.selectors import Taint
from roost_core.placement.rendezvous import rank_nodes
from tests.builders import NAMESPACE, REPOSITORY, Desk, build_pod, builder_nodes, facts, homes_of, node, patched
from webhook.facts import Facts

FIVE = facts(*builder_nodes(), builders=" ".join(f"node-{index}" for index in range(5)))
RING = rank_nodes(REPOSITORY, [f"node-{index}" for index in range(5)])
TAINTED = (Taint("dedicated", "users", "NoSchedule"),)


def burst(known: Facts, builds: int = 60) -> tuple[int, str]:
    """How many builds of a burst, of ten repositories, went to their repository's first home, and their last note."""
    desk, at_home, note = Desk(known=known), 0, ""
    ring = {name for name, one in (known.nodes or {}).items() if not one.taints}
    for index in range(builds):
        repository = f"{REPOSITORY}-{index % 10}"
        response = desk.answer(build_pod(repository, name=f"build-{index}"))
        ((_, first), *_) = homes_of(patched(build_pod(repository), response))
        at_home += first == rank_nodes(repository, ring)[0]
        note = response["auditAnnotations"]["home"]
    return at_home, note


def test_nodes_that_a_build_may_not_use_dont_lower_the_bound() -> None:
    usable = builder_nodes(10)
    shut = [node(f"shut-{index}", taints=TAINTED) for index in range(20)]
    names = " ".join(one.name for one in (*usable, *shut))
    alone, _ = burst(facts(*usable, builders=names))
    beside, note = burst(facts(*usable, *shut, builders=names))
    assert beside == alone
    assert alone / 60 >= 0.8
    assert note.endswith(" of 10")


def test_the_bound_follows_a_taint_that_comes_and_goes() -> None:
    # Two usable nodes of five take 2 x 11 / 2 = 11 builds each, five take 5 each.
    desk = Desk(known=FIVE)
    nodes = FIVE.nodes
    assert nodes is not None
    away = {name: node(name, taints=TAINTED) for name in RING[2:]}
    back = {name: node(name) for name in RING[2:]}
    running = {f"{NAMESPACE}/b-{index}": RING[0] for index in range(10)}
    for change, first in ((back, RING[1]), (away, RING[0]), (back, RING[1])):
        nodes = nodes.updated(change)
        desk.facts = replace(
            facts(builders=" ".join(RING), builds=running), nodes=nodes, builder_nodes=FIVE.builder_nodes
        )
        assert homes_of(desk.place(build_pod()))[0][1] == first
