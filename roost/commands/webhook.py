"""`roost webhook`: the admission webhook."""

from typing import Final

from roost.commands.options import program
from webhook.main import serve
from webhook.webhook_options import WebhookOptions

command: Final = program(
    "webhook",
    WebhookOptions,
    serve,
    """Serve admission reviews until SIGTERM.

    \b
    roost webhook --settings release.json --release roost --namespace jhub --no-cluster \\
        --certificate-folder tls/
    """,
)
