"""Run a sweep's jobs on a Dask cluster instead of on this machine.

The cluster's workers need the same version of Roost, and the trace under the same path. Dask's
scheduler gives the jobs of a lost worker to others. The package `distributed` is an optional
dependency and slow to load, so it is imported only when needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from roost_lab.simulator.sweep.run import Job, ReplayEnd, SweepError, Work, run_job

CONNECT_SECONDS: Final = 20
# Workers that may die during one replay before Dask gives it up.
MOST_LOST: Final = 3


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """A cluster by its scheduler's address, such as tcp://10.0.0.5:8786."""

    address: str

    def __call__(self, jobs: Sequence[Job], work: Work) -> Generator[ReplayEnd, None, None]:
        """Run all jobs; yields the end of each, in any order.

        Raises SweepError where Dask, its scheduler or its workers are missing, or a replay fails.
        """
        try:
            distributed = import_module("distributed")
        except ImportError:
            raise SweepError(
                "--dask needs the package distributed: install roost-lab[dask]"
            ) from None
        try:
            # Connect once without a client: a client that can't connect leaves a thread and a
            # traceback behind.
            asyncio.run(asyncio.wait_for(_probe(self.address), CONNECT_SECONDS))
            client = distributed.Client(self.address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            why = str(error) or f"no answer within {CONNECT_SECONDS} s"
            raise SweepError(
                f"--dask {self.address}: no scheduler answers: {why}. Expected an address such as"
                " tcp://10.0.0.5:8786"
            ) from None
        try:
            if not client.scheduler_info(n_workers=-1)["workers"]:
                raise SweepError(
                    f"--dask {self.address}: the scheduler has no workers. Start some: dask worker"
                    " ADDRESS"
                )
            yield from _follow(client, jobs, work)
        finally:
            # This cancels the client's futures, so the cluster is free again after Ctrl-C, too.
            client.close()


async def _probe(address: str) -> None:
    """Connect to a scheduler as Dask's client does, and close the connection.

    Raises OSError, ValueError or TimeoutError where no scheduler answers.
    """
    distributed = import_module("distributed")
    secrets = distributed.Security().get_connection_args("client")
    connection = await import_module("distributed.core").connect(
        address, timeout=CONNECT_SECONDS, **secrets
    )
    await connection.close()


def _follow(client: Any, jobs: Sequence[Job], work: Work) -> Iterator[ReplayEnd]:  # noqa: ANN401 - Dask gives no types
    """Submit all jobs, and yield the end of each as it comes. Raises SweepError where one fails."""
    distributed = import_module("distributed")
    job_of_future = {}
    for number, job in enumerate(jobs):
        # Dask runs the greatest priority first.
        future = client.submit(run_job, job, work, pure=False, retries=MOST_LOST, priority=-number)
        job_of_future[future] = job
    for future in distributed.as_completed(list(job_of_future), loop=client.loop):
        job = job_of_future.pop(future)
        try:
            yield ReplayEnd(job.key, future.result())
        except distributed.KilledWorker:
            raise SweepError(
                f"{job}: workers died while replaying it, mostly for lack of memory"
            ) from None
        except ImportError as error:
            raise SweepError(
                f"{job}: a worker can't load Roost ({error}): install the same version there"
            ) from None
        # The result is here now, so the cluster needn't keep it.
        future.release()
