"""All errors that Slackwater raises, as one tree.

::

    SlackwaterError
    ├── InvalidOption      an argument is out of range or malformed (a ratio of 2, "10 parsecs")
    ├── InvalidStream      the DataFrame cannot carry the promise (not streaming, a missing column, a wrong type)
    ├── InvalidData        a file or table given to a command is missing, unreadable or has the wrong columns
    ├── QueryTextError     the text of a query is wrong; the message points at the character
    ├── PromiseConflict    two promises, or a promise and a plain watermark, exclude each other
    ├── UnknownName        there is no method, law, figure or query of that name
    ├── QueryFailed        a running query failed; the message is Spark's
    └── MissingRequirement something must be installed or configured first (Java, an extra, a shared directory)

Each message reads ``[condition-name] what is wrong, with the value; what to do``. A promise that breaks while a query
runs is not an error: the ledger and the live page report it.
"""

from __future__ import annotations


class SlackwaterError(Exception):
    """Base class. ``condition`` is a stable name for programs; ``problem`` and ``remedy`` make up the text.

    >>> str(SlackwaterError("no-such-thing", "there is no 'x'", "use 'y'"))
    "[no-such-thing] there is no 'x'; use 'y'"
    """

    def __init__(self, condition: str, problem: str, remedy: str) -> None:
        super().__init__(f"[{condition}] {problem}; {remedy}")
        self.condition = condition
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[SlackwaterError], tuple[str, str, str]]:
        return type(self), (self.condition, self.problem, self.remedy)


class InvalidOption(SlackwaterError, ValueError):
    """An argument is out of range or malformed."""


class InvalidStream(SlackwaterError, ValueError):
    """The DataFrame cannot carry the promise."""


class InvalidData(SlackwaterError, ValueError):
    """A file or table given to a command is missing, unreadable or has the wrong columns."""


class QueryTextError(SlackwaterError, ValueError):
    """The text of a query is wrong; the message points at the character."""


class PromiseConflict(SlackwaterError, ValueError):
    """Two promises, or a promise and a plain watermark, exclude each other."""


class UnknownName(SlackwaterError, LookupError):
    """There is no method, law, figure or query of that name."""


class QueryFailed(SlackwaterError, RuntimeError):
    """A running query failed; the message is Spark's."""


class MissingRequirement(SlackwaterError, RuntimeError):
    """Something must be installed or configured first."""
