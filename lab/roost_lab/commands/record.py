"""`roost record`: the recorder."""

from typing import Final

from roost.commands.options import program
from roost_lab.recorder.main import serve
from roost_lab.recorder.options import RecorderOptions

command: Final = program(
    "record",
    RecorderOptions,
    serve,
    """Record scheduling decisions and start phases until SIGTERM.

    \b
    roost record --settings release.json --database roost.db --kubeconfig ~/.kube/config
    """,
)
