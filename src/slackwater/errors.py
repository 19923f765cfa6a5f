"""Everything that Slackwater refuses, as one tree.

::

    SlackwaterError
    ├── InvalidOption      an argument has a value that cannot be meant (a ratio of 2, "10 parsecs")
    ├── InvalidStream      the DataFrame cannot carry the promise (a batch, no such column, wrong type)
    ├── InvalidData        a file or table given to a command cannot be read as what it should be
    ├── QueryTextError     a query text is wrong; points at the character
    ├── PromiseConflict    two promises, or a promise and a plain watermark, contradict each other
    ├── UnknownName        no method, law, figure or query has that name
    ├── QueryFailed        a running query failed, with what Spark says
    └── MissingRequirement something outside Slackwater is missing (a Java runtime, a shared directory)

The text of each reads ``[condition-name] what is wrong, with the value; what to do``. A promise that breaks while
a query runs is not an error: it is a fact in the ledger.
"""

from __future__ import annotations


class SlackwaterError(Exception):
    """What a caller did, or what the environment lacks, makes it impossible to go on.

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
    """An argument has a value that cannot be meant."""


class InvalidStream(SlackwaterError, ValueError):
    """The DataFrame cannot carry the promise."""


class InvalidData(SlackwaterError, ValueError):
    """A file or table given to a command cannot be read as what it should be."""


class QueryTextError(SlackwaterError, ValueError):
    """A query text is wrong; the message points at the character."""


class PromiseConflict(SlackwaterError, ValueError):
    """Two promises, or a promise and a plain watermark, contradict each other."""


class UnknownName(SlackwaterError, LookupError):
    """No method, law, figure or query has that name."""


class QueryFailed(SlackwaterError, RuntimeError):
    """A running query failed; the message is what Spark says."""


class MissingRequirement(SlackwaterError, RuntimeError):
    """Something outside Slackwater is missing."""
