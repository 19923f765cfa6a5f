"""What a verb is doing, for people: a spinner on a terminal, else a line on standard error now and then."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import click
from rich.console import Console

EVERY_S = 10.0
INTERRUPTED = 130


class ProgressLines:
    """Prints the current text with the seconds since the start, whenever ``print_line`` is called.

    Used where there is no terminal: a log then shows that the work goes on.
    """

    def __init__(self, console: Console, text: str) -> None:
        self._console = console
        self._text = text
        self._started_s = time.monotonic()

    def say(self, text: str) -> None:
        """Change the text."""
        self._text = text

    def print_line(self) -> None:
        """Print the text."""
        seconds = time.monotonic() - self._started_s
        self._console.print(f"{self._text} ({seconds:.0f} s)", highlight=False, markup=False, soft_wrap=True)


class Work:
    """Work in progress. ``say`` changes the text; ``pause`` makes room for a line of output on a terminal."""

    def __init__(self, console: Console, text: str) -> None:
        self._status = console.status(text) if console.is_terminal else None
        self.lines = None if console.is_terminal else ProgressLines(console, text)

    def say(self, text: str) -> None:
        """Show another text."""
        if self._status is not None:
            self._status.update(text)
        elif self.lines is not None:
            self.lines.say(text)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Take the spinner away meanwhile."""
        if self._status is None:
            yield
            return
        self._status.stop()
        try:
            yield
        finally:
            self._status.start()

    @contextlib.contextmanager
    def shown(self, every_s: float) -> Iterator[Work]:
        """Show the text meanwhile."""
        if self._status is not None:
            with self._status:
                yield self
            return
        done = threading.Event()

        def print_lines() -> None:
            while self.lines is not None and not done.wait(every_s):
                self.lines.print_line()

        thread = threading.Thread(target=print_lines, name="slackwater-progress", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            done.set()
            thread.join()


@contextlib.contextmanager
def unless_interrupted(what: str) -> Iterator[None]:
    """End the block at Ctrl-C, say that only a part follows, and remember the exit code of an interrupted verb."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print(f"interrupted: {what}", highlight=False)
        click.get_current_context().call_on_close(_exit_as_interrupted)


def _exit_as_interrupted() -> None:
    raise click.exceptions.Exit(INTERRUPTED)


def working(text: str, *, spinner: bool = True, every_s: float = EVERY_S) -> contextlib.AbstractContextManager[Work]:
    """Show on standard error what a verb is doing. Without ``spinner`` a terminal shows nothing: it has a bar."""
    console = Console(stderr=True)
    if console.is_terminal and not spinner:
        console = Console(stderr=True, quiet=True)
    return Work(console, text).shown(every_s)
