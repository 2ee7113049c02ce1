"""Reviews per second, sent directly to the webhook.

`python -m benchmarks.direct`. The webhook has one core to itself, the load the other; TLS, 16 and
64 kept-alive connections. Also: memory of a replica after the load, and how long it takes from its
start to ready.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from benchmarks.figures import machine, say, spread, table
from benchmarks.servers import server_cores
from benchmarks.stage import NAMESPACES, Stage
from roost_core.objects.fields import JSONObject
from tests.harness.controlplane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.servers import Server

CONNECTIONS = (16, 64)
GOAL_MEMORY_MIB = 150
GOAL_READY_SECONDS = 2


def measure(stage: Stage, server: Server, rounds: int, reviews: int) -> dict[int, list[JSONObject]]:
    """Load the webhook with each number of connections in each round."""
    files = stage.write_reviews(stage.cluster.folder / "reviews", NAMESPACES["roost"])
    found: dict[int, list[JSONObject]] = {connections: [] for connections in CONNECTIONS}
    for number in range(rounds):
        for connections, results in found.items():
            flags = (f"-connections={connections}", f"-count={reviews}", "-seconds=60")
            result = stage.servers.load(server, files, *flags)
            results.append(result)
            say(
                f"  round {number + 1}, {connections} connections, {result['rps']:6.0f}/s p50"
                f" {result['p50_ms']:6.2f} p99 {result['p99_ms']:6.2f} ms"
            )
    return found


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


def report(found: dict[int, list[JSONObject]]) -> str:
    """The table, and how many reviews failed or brought a patch."""
    columns = ("rps", "p50_ms", "p99_ms", "cpu_us")
    rows = [
        [str(connections), *(spread(result[column] for result in results) for column in columns)]
        for connections, results in found.items()
    ]
    head = ["connections", "reviews/s", "p50 ms", "p99 ms", "CPU µs a review"]
    total = {
        key: sum(result[key] for results in found.values() for result in results)
        for key in ("reviews", "failed", "patched")
    }
    counts = "reviews: {reviews}, of which failed: {failed}; answers with a patch: {patched}"
    return "\n".join([table(head, rows), "", counts.format_map(total)])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.direct", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--reviews", type=int, default=20000, help="a number of connections and a round"
    )
    parser.add_argument("--nodes", type=int, default=20)
    given = parser.parse_args(argv)
    print(
        f"direct: {machine()}; {given.rounds} rounds of {given.reviews} reviews; {given.nodes}"
        " nodes with builders"
    )
    with ControlPlane(controllers=()) as cluster:
        stage = Stage(cluster, nodes=given.nodes)
        server = stage.servers.start_roost(cores=server_cores())
        fresh, _ = server.memory_mib()
        print(report(measure(stage, server, given.rounds, given.reviews)))
        now, peak = server.memory_mib()
        print(f"memory of Roost after the load: {now:.0f} MiB, at most {peak:.0f} MiB")
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
