"""``slackwater completion``: the script that teaches a shell to complete this command."""

from __future__ import annotations

import json

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--json", "as_json", is_flag=True, help="Print the script as JSON.")
def command(shell: str, as_json: bool) -> None:
    """Print the script that lets SHELL complete verbs and options.

    \b
    Examples:
      eval "$(slackwater completion bash)"            # for this shell
      slackwater completion bash >> ~/.bashrc         # for every new shell
      slackwater completion zsh >> ~/.zshrc
      slackwater completion fish > ~/.config/fish/completions/slackwater.fish
    """
    from slackwater.cli.main import command as root

    chosen = get_completion_class(shell)
    assert chosen is not None
    script = chosen(root, {}, "slackwater", "_SLACKWATER_COMPLETE").source()
    click.echo(json.dumps({"shell": shell, "script": script}) if as_json else script)
