"""`shoal completion`: prints the shell code that completes commands and options."""

import click
from click.shell_completion import get_completion_class

from bootstrap.cli.command import command

COMPLETION = "_SHOAL_COMPLETE"
"""Environment variable by which a shell requests completions."""


@command(
    json="",
    help="Print shell code for tab completion of Shoal's commands, options and values.",
    epilog="""\
\b
Examples:
  echo 'eval "$(shoal completion bash)"' >>~/.bashrc
  echo 'eval "$(shoal completion zsh)"' >>~/.zshrc
""",
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def run(ctx: click.Context, shell: str) -> int:
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "shoal", COMPLETION).source())
    return 0
