"""Work in forked processes, which find there what can't be sent to them."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Job = TypeVar("Job")
Done = TypeVar("Done")


def in_processes(
    work: Callable[[Job], Done], todo: Sequence[Job], processes: int
) -> Iterator[tuple[Job, Done]]:
    """Each job with what became of it, in the order in which they end. processes: 1: this one."""
    if processes == 1:
        for job in todo:
            yield job, work(job)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        coming = {pool.submit(work, job): job for job in todo}
        for future in as_completed(coming):
            yield coming[future], future.result()
