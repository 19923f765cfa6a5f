"""A group of verbs that are imported when they are needed."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Verbs by name: the module that holds each (as ``command``) and the line that the help shows.

    ``sections`` puts them in the order of a tour; what no section names comes last.
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
        """A verb that is nearly right is answered with the right one."""
        near = difflib.get_close_matches(args[0], self._verbs, 1)
        if args[0] not in self._verbs and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs first: they are what a person looks for."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = [verb for verbs in self._sections.values() for verb in verbs]
        rest = [verb for verb in self._verbs if verb not in named]
        wide = max(len(verb) for verb in self._verbs)
        for title, verbs in {**self._sections, "More" if named else "Commands": rest}.items():
            if verbs:
                with formatter.section(title):
                    formatter.write_dl([(verb.ljust(wide), self._verbs[verb][1]) for verb in verbs])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names and lines as they are here: pressing a key must not load Spark."""
        verbs = [
            CompletionItem(verb, help=line) for verb, (_, line) in self._verbs.items() if verb.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]
