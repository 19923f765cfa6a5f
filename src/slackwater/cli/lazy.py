"""A click group that imports a verb only when it is called."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group whose ``verbs`` map a name to its module and its line in the help.

    The module must define the verb as ``command``. ``sections`` maps a heading of the help to its verbs, in order;
    verbs in no section come last.
    """

    def __init__(
        self,
        name: str,
        verbs: dict[str, tuple[str, str]],
        help: str,
        *,
        sections: Mapping[str, Sequence[str]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, help=help, no_args_is_help=True, **options)
        self._verbs = verbs
        self._sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        command = importlib.import_module(self._verbs[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the closest verb when the name is unknown."""
        similar = difflib.get_close_matches(args[0], self._verbs, 1)
        if args[0] not in self._verbs and similar:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {similar[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs before the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = [verb for verbs in self._sections.values() for verb in verbs]
        rest = [verb for verb in self._verbs if verb not in named]
        width = max(len(verb) for verb in self._verbs)
        for title, verbs in {**self._sections, "More" if named else "Commands": rest}.items():
            if verbs:
                with formatter.section(title):
                    formatter.write_dl([(verb.ljust(width), self._verbs[verb][1]) for verb in verbs])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete from this table alone: importing the verbs would load Spark on every Tab."""
        verbs = [
            CompletionItem(verb, help=line) for verb, (_, line) in self._verbs.items() if verb.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]
