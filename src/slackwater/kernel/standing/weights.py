"""The queries of one shard as a table lists them: streams by name, and a mark by which a query is known again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from slackwater.errors import InvalidOption
from slackwater.kernel.standing.queries import QuerySet
from slackwater.promises import Precision

Floats = NDArray[np.float64]
Marks = NDArray[np.uint64]


class ShardWeights:
    """Queries from rows (query, stream, weight, within, confidence); rows of one pair add up.

    A row without a query, a stream or a finite weight is left out. A query's bound and confidence are those of its
    first row; where they cannot be meant the query is ``invalid``, and no answer is given. A query's mark is made of
    its name and of what it says: weights, bound and confidence.
    """

    def __init__(self, frame: pd.DataFrame, within: str | float | None, confidence: str | float | None) -> None:
        frame = frame.dropna(subset=["query", "stream", "weight"])
        frame = frame[np.isfinite(frame["weight"].to_numpy(dtype=np.float64))]
        rows, ids = pd.factorize(frame["query"], sort=True)
        columns, streams = pd.factorize(frame["stream"].astype(str), sort=True)
        first = np.unique(rows, return_index=True)[1]
        bounds = _listed(frame, "within", within, first)
        confidences = _listed(frame, "confidence", confidence, first)
        known = {pair: _promise(*pair) for pair in dict.fromkeys(zip(bounds, confidences, strict=True))}
        promises = [known[pair] for pair in zip(bounds, confidences, strict=True)]
        valid = np.array([promise is not None for promise in promises], dtype=np.bool_)
        good = [promise for promise in promises if promise is not None]
        matrix = sparse.coo_matrix(
            (frame["weight"].to_numpy(dtype=np.float64), (rows, columns)), shape=(len(ids), len(streams))
        ).tocsr()[np.flatnonzero(valid)]
        names = np.asarray(ids)
        self.invalid: NDArray[Any] = names[~valid]
        self.streams = [str(name) for name in streams]
        self.queries = QuerySet.of(
            names[valid],
            matrix,
            np.array([promise.bound for promise in good], dtype=np.float64),
            np.array([promise.confidence for promise in good], dtype=np.float64),
            np.array([promise.relative for promise in good], dtype=np.bool_),
        )
        self.marks = _marks(self.queries, self.streams)
        self._over: tuple[list[str], QuerySet] | None = None

    def over(self, known: list[str]) -> tuple[QuerySet, list[str]]:
        """The queries over the streams known so far and, after them, those that only the weights know."""
        place = {name: at for at, name in enumerate(known)}
        names = known + [name for name in self.streams if name not in place]
        if self._over is None or self._over[0] != names:
            place = {name: at for at, name in enumerate(names)}
            column = np.array([place[name] for name in self.streams], dtype=np.int32)
            old = self.queries.weights
            moved = column[old.indices] if len(column) else old.indices
            wide = sparse.csr_matrix((old.data, moved, old.indptr), shape=(len(self.queries.ids), len(names)))
            some = self.queries
            self._over = names, QuerySet(some.ids, wide, some.bound, some.relative, some.confidence, some.z)
        return self._over[1], list(names)


def member_name(group: str, stream: str) -> str:
    """A stream as a member of a group."""
    return f"{group}\x1f{stream}"


def members(names: list[str], weight: float, average: bool, within: str | float, confidence: float) -> ShardWeights:
    """Queries whose members are all streams seen in their group: a weight each, over their number for an average.

    >>> members([member_name("a", "s0"), member_name("a", "s1")], 1.0, True, 2.0, 0.9).queries.weights.toarray()
    array([[0.5, 0.5]])
    """
    frame = pd.DataFrame({"query": [name.partition("\x1f")[0] for name in names], "stream": names})
    count = frame.groupby("query")["stream"].transform("size") if average else 1
    return ShardWeights(frame.assign(weight=weight / count), within, confidence)


def came_from(now: Marks, before: Marks) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the query of each mark stood before (−1 for a new one), and whether it still says the same."""
    if len(before) == 0:
        return np.full(len(now), -1, dtype=np.int64), np.zeros(len(now), dtype=np.bool_)
    order = np.argsort(before[:, 0], kind="stable")
    at = order[np.minimum(np.searchsorted(before[order, 0], now[:, 0]), len(before) - 1)]
    known, same = (before[at] == now).T
    return np.where(known, at, -1).astype(np.int64), known & same


def _listed(frame: pd.DataFrame, column: str, given: str | float | None, first: NDArray[np.int64]) -> list[Any]:
    return [given] * len(first) if given is not None else frame[column].to_numpy()[first].tolist()


def _promise(within: Any, confidence: Any) -> Precision | None:
    try:
        return Precision.of(within, confidence)
    except (InvalidOption, TypeError, ValueError):
        return None


def _marks(queries: QuerySet, streams: list[str]) -> Marks:
    """A word for the name and one for what is said: of a million changes not one may go unnoticed.

    Sums of mixed words, so that the order of streams does not matter.
    """
    matrix = queries.weights
    named = pd.util.hash_array(np.array(streams, dtype=object)) if streams else np.zeros(0, dtype=np.uint64)
    words = _mixed(named[matrix.indices] ^ _mixed(matrix.data.view(np.uint64)))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    total = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    total = _mixed(total) ^ queries.bound.view(np.uint64)
    total = _mixed(total) ^ queries.confidence.view(np.uint64)
    said = _mixed(total + queries.relative.astype(np.uint64))
    names = _mixed(pd.util.hash_array(queries.ids.astype(str).astype(object)))
    return np.column_stack([names, said]).astype(np.uint64)


def _mixed(words: Marks) -> Marks:
    """A bijection that lets every bit matter to every other (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)), dtype=np.uint64)
