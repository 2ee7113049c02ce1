"""`roost controllers`: the image gate, the placeholder mover and the other controllers."""

from typing import Final

from roost.commands.options import program
from roost.controllers.controllers_options import ControllersOptions
from roost.controllers.main import serve

command: Final = program(
    "controllers",
    ControllersOptions,
    serve,
    """Run the image gate, the placeholder mover and the other controllers until SIGTERM.

    \b
    roost controllers --settings release.json --release roost --namespace jhub \\
        --kubeconfig ~/.kube/config --dry-run
    """,
)
