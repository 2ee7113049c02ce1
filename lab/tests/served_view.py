"""`roost view` in this process, for a browser."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from roost_core.http.server import bind
from roost_lab.view.server import make_app, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roost_lab.view.server import MomentSource


@contextlib.contextmanager
def served_view(sources: Sequence[MomentSource], names: Sequence[str] = ("",)) -> Iterator[str]:
    """The address of `roost view` of one or two records, while the context lasts."""
    bound = bind("127.0.0.1", 0)
    bound.listen(64)
    server = serve(make_app(sources, "token", names=names), bound)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/?token=token"
    finally:
        server.shutdown()
        thread.join()
        bound.close()
