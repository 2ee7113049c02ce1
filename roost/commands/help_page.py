"""`roost help`: the help of the program or of one command."""

import click


@click.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(context: click.Context, *, words: tuple[str, ...]) -> int:
    """Print the help of a command, as its --help does; without COMMAND the list of all.

    \b
    roost help validate
    roost help records import
    """
    within = context.parent or context
    found: click.Command = within.command
    for word in words:
        inner = found.get_command(within, word) if isinstance(found, click.Group) else None
        if inner is None:
            raise click.UsageError(f"found no command {word!r} in {within.command_path}")
        within = click.Context(inner, info_name=word, parent=within)
        found = inner
    click.echo(found.get_help(within))
    return 0
