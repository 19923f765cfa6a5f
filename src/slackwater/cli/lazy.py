"""A group of verbs that are imported when they are needed."""

from __future__ import annotations

import importlib

import click


class LazyGroup(click.Group):
    """Verbs by name: the module that holds each (as ``command``) and the line that the help shows."""

    def __init__(self, name: str, verbs: dict[str, tuple[str, str]], help: str) -> None:
        super().__init__(name, help=help, no_args_is_help=True)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        command = importlib.import_module(self._verbs[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in self._verbs.items()])
