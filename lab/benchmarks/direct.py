"""Reviews per second, sent directly to the webhooks: Roost against the same rules in Go, on as many
cores.

`python -m benchmarks.direct`. Each server has one core to itself (GOMAXPROCS=1), the load the
other; TLS, 16 and 64 kept-alive connections. Rounds go through all servers one after the other, so
that a slow moment hits all. Also: memory of a Roost replica after the load, and how long it takes
from its start to ready.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import equality
from benchmarks.figures import machine, ratios, say, spread, table, verdict
from benchmarks.servers import server_cores
from benchmarks.stage import NAMESPACES, Stage
from roost_core.objects.fields import JSONObject
from tests.harness.controlplane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.servers import Server

CONNECTIONS = (16, 64)
SERVERS = ("empty", "lean", "rules", "roost")
GOAL_RPS = 0.5
GOAL_MEMORY_MIB = 150
GOAL_READY_SECONDS = 2


def measure(
    stage: Stage, servers: Sequence[Server], rounds: int, reviews: int
) -> dict[tuple[str, int], list[JSONObject]]:
    """Load each server with each number of connections in each round."""
    files = {
        server.name: stage.write_reviews(
            stage.cluster.folder / f"reviews-{server.name}", _namespace(server.name)
        )
        for server in servers
    }
    found: dict[tuple[str, int], list[JSONObject]] = {}
    for number in range(rounds):
        # Another order each round: nobody always runs first, on a cold cache, or last.
        turn = number % len(servers)
        for connections, server in itertools.product(
            CONNECTIONS, [*servers[turn:], *servers[:turn]]
        ):
            flags = (f"-connections={connections}", f"-count={reviews}", "-seconds=60")
            result = stage.servers.load(server, files[server.name], *flags)
            found.setdefault((server.name, connections), []).append(result)
            said = (
                f"{result['rps']:6.0f}/s p50 {result['p50_ms']:6.2f} p99 {result['p99_ms']:6.2f} ms"
            )
            say(f"  round {number + 1}, {connections} connections, {server.name:6} {said}")
    return found


def _namespace(server: str) -> str:
    return NAMESPACES["rules" if server == "lean" else "roost" if server == "empty" else server]


def time_to_ready(stage: Stage, times: int) -> list[tuple[float, float]]:
    """From the start of a replica to its first ready, several times: seconds by the clock and of
    processor time.
    """
    found = []
    for _ in range(times):
        server = stage.servers.start_roost()
        found.append((server.ready_seconds, server.cpu_seconds()))
        server.process.kill()
    return found


def report(found: dict[tuple[str, int], list[JSONObject]]) -> str:
    """The table and the ratios."""
    rows = []
    for (name, connections), results in found.items():
        rows.append(
            [
                name,
                str(connections),
                spread(one["rps"] for one in results),
                spread(one["p50_ms"] for one in results),
                spread(one["p99_ms"] for one in results),
                spread(one["cpu_us"] for one in results),
            ]
        )
    rows.sort(key=lambda row: (int(row[1]), row[0]))
    head = ["server", "connections", "reviews/s", "p50 ms", "p99 ms", "CPU µs a review"]
    lines = [table(head, rows), ""]
    for connections in CONNECTIONS:
        rps = {
            name: [one["rps"] for one in found[name, connections]]
            for name in SERVERS
            if (name, connections) in found
        }
        for peer in ("rules", "lean", "empty"):
            shares = ratios(rps["roost"], rps[peer])
            goal = f"  {verdict(median(shares), at_least=GOAL_RPS)}" if peer == "rules" else ""
            lines.append(f"{connections} connections: Roost / Go {peer}: {spread(shares)}x{goal}")
    total = {
        key: sum(one[key] for results in found.values() for one in results)
        for key in ("failed", "reviews")
    }
    lines.append(f"reviews: {total['reviews']}, of which failed: {total['failed']}")
    patched = {
        name: sum(one["patched"] for c in CONNECTIONS for one in found[name, c]) for name in SERVERS
    }
    lines.append(f"answers with a patch: {patched}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.direct", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--reviews", type=int, default=20000, help="a server, a number of connections and a round"
    )
    parser.add_argument("--nodes", type=int, default=20)
    given = parser.parse_args(argv)
    if equality.main():
        return 1
    print(
        f"direct: {machine()}; {given.rounds} rounds of {given.reviews} reviews; {given.nodes}"
        " nodes with builders"
    )
    with ControlPlane(controllers=()) as cluster:
        stage = Stage(cluster, nodes=given.nodes)
        cores = server_cores()
        servers = [stage.servers.start_go(peer, cores=cores) for peer in ("empty", "lean", "rules")]
        servers.append(stage.servers.start_roost(cores=cores))
        fresh = servers[-1].memory_mib()[0]
        print(report(measure(stage, servers, given.rounds, given.reviews)))
        for server in servers[1:]:
            now, peak = server.memory_mib()
            print(f"memory of {server.name} after the load: {now:.0f} MiB, at most {peak:.0f} MiB")
            server.process.kill()
        print(
            f"memory of Roost when ready: {fresh:.0f} MiB; goal <= {GOAL_MEMORY_MIB} MiB for a"
            " replica"
        )
        starts = time_to_ready(stage, 7)
        seconds, processor = zip(*starts, strict=True)
        print(
            f"Roost, from start to ready: {spread(seconds)} s, of which {spread(processor)} s on a"
            " processor",
            end="; ",
        )
        print(f"{len(starts)} starts; goal < {GOAL_READY_SECONDS} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
