"""`roost completion`: what makes a shell complete commands and options."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_ROOST_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(context: click.Context, *, shell: str) -> int:
    """Print what makes SHELL complete commands and options.

    \b
    source <(roost completion bash)          # in ~/.bashrc
    source <(roost completion zsh)           # in ~/.zshrc, after compinit
    roost completion fish | source           # in ~/.config/fish/config.fish
    """
    root = context.find_root()
    completion_class = get_completion_class(shell)
    # Click knows each shell of `_SHELLS`.
    assert completion_class is not None  # noqa: S101
    click.echo(completion_class(root.command, {}, "roost", _VARIABLE).source())
    return 0
