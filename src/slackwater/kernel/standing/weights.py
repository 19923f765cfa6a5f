"""The queries of one shard, built from rows of weights, with fingerprints that recognise a query in a later version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from slackwater.errors import InvalidOption
from slackwater.kernel.standing.queries import Members, QuerySet
from slackwater.promises import Precision

Floats = NDArray[np.float64]
Fingerprints = NDArray[np.uint64]

MEMBER_SEPARATOR = "\x1f"
"""Between a group's key and a stream's key in the name of a member."""


class ShardWeights:
    """Queries from rows (query, stream, weight, within, confidence). Weights of one (query, stream) pair add up.

    A row without a query, a stream or a finite weight is left out. A query takes its bound and confidence from its
    first row, or from the arguments. If they are not valid, the query is listed in ``invalid`` and gets no answer.
    ``fingerprints`` has two numbers per query: one for its id, one for its weights, bound and confidence.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        within: str | float | None,
        confidence: str | float | None,
        members: Members = "all",
    ) -> None:
        frame = frame.dropna(subset=["query", "stream", "weight"])
        frame = frame[np.isfinite(frame["weight"].to_numpy(dtype=np.float64))]
        rows, ids = pd.factorize(frame["query"], sort=True)
        columns, streams = pd.factorize(frame["stream"].astype(str), sort=True)
        first = np.unique(rows, return_index=True)[1]
        promises = _promises(
            _given_or_column(frame, "within", within, first), _given_or_column(frame, "confidence", confidence, first)
        )
        valid = np.array([promise is not None for promise in promises], dtype=np.bool_)
        valid_promises = [promise for promise in promises if promise is not None]
        matrix = sparse.coo_matrix(
            (frame["weight"].to_numpy(dtype=np.float64), (rows, columns)), shape=(len(ids), len(streams))
        ).tocsr()[np.flatnonzero(valid)]
        names = np.asarray(ids)
        self.invalid: NDArray[Any] = names[~valid]
        self.streams = [str(name) for name in streams]
        queries = QuerySet.of(
            names[valid],
            matrix,
            np.array([promise.bound for promise in valid_promises], dtype=np.float64),
            np.array([promise.confidence for promise in valid_promises], dtype=np.float64),
            np.array([promise.relative for promise in valid_promises], dtype=np.bool_),
        )
        self.queries = replace(queries, members=members)
        self.fingerprints = _fingerprints(self.queries, self.streams)
        self._over: tuple[list[str], QuerySet] | None = None

    def over(self, known: list[str]) -> tuple[QuerySet, list[str]]:
        """The queries with a column per stream, and the streams: those in ``known`` first, then those only we name."""
        position = {name: at for at, name in enumerate(known)}
        names = known + [name for name in self.streams if name not in position]
        if self._over is None or self._over[0] != names:
            position = {name: at for at, name in enumerate(names)}
            column = np.array([position[name] for name in self.streams], dtype=np.int32)
            old = self.queries.weights
            moved = column[old.indices] if len(column) else old.indices
            wide = sparse.csr_matrix((old.data, moved, old.indptr), shape=(self.queries.queries, len(names)))
            self._over = names, replace(self.queries, weights=wide)
        return self._over[1], list(names)


def member_name(group: str, stream: str) -> str:
    """The name of a stream as a member of a group."""
    return f"{group}{MEMBER_SEPARATOR}{stream}"


def stream_name(member: str) -> str:
    """A member's name for people: the stream, and its group if there are several.

    >>> stream_name(member_name('{"floor":3}', "s0")), stream_name("AAPL")
    ('s0 {"floor":3}', 'AAPL')
    """
    group, separator, stream = member.partition(MEMBER_SEPARATOR)
    return member if not separator else (stream if group == "{}" else f"{stream} {group}".strip())


def group_weights(
    members: list[str], weight: float, average: bool, within: str | float, confidence: float
) -> ShardWeights:
    """One query per group over all its members, given as ``member_name``s. For an average, weights are divided by n.

    A stream is a member from its first row on.

    >>> names = [member_name("a", "s0"), member_name("a", "s1")]
    >>> group_weights(names, 1.0, True, 2.0, 0.9).queries.weights.toarray()
    array([[0.5, 0.5]])
    """
    frame = pd.DataFrame({"query": [name.partition(MEMBER_SEPARATOR)[0] for name in members], "stream": members})
    count = frame.groupby("query")["stream"].transform("size") if average else 1
    kind: Members = "average" if average else "sum"
    return ShardWeights(frame.assign(weight=weight / count), within, confidence, kind)


def match_queries(now: Fingerprints, before: Fingerprints) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each query's previous row (−1 for a new query), and whether it is unchanged."""
    if len(before) == 0:
        return np.full(len(now), -1, dtype=np.int64), np.zeros(len(now), dtype=np.bool_)
    order = np.argsort(before[:, 0], kind="stable")
    at = order[np.minimum(np.searchsorted(before[order, 0], now[:, 0]), len(before) - 1)]
    same_id, same_contents = (before[at] == now).T
    return np.where(same_id, at, -1).astype(np.int64), same_id & same_contents


def _given_or_column(
    frame: pd.DataFrame, column: str, given: str | float | None, first: NDArray[np.int64]
) -> list[Any]:
    return [given] * len(first) if given is not None else frame[column].to_numpy()[first].tolist()


def _promises(bounds: list[Any], confidences: list[Any]) -> list[Precision | None]:
    """The checked promise of each query, None where it is not valid. Equal ones are checked once."""
    pairs = list(zip(bounds, confidences, strict=True))
    checked = {pair: _promise(*pair) for pair in dict.fromkeys(pairs)}
    return [checked[pair] for pair in pairs]


def _promise(within: Any, confidence: Any) -> Precision | None:
    try:
        return Precision.of(within, confidence)
    except (InvalidOption, TypeError, ValueError):
        return None


def _fingerprints(queries: QuerySet, streams: list[str]) -> Fingerprints:
    """64 bits for the id and 64 for the contents, so that a change practically never goes unnoticed.

    The contents are a sum over the weights, so the order of the streams does not matter.
    """
    matrix = queries.weights
    names = pd.util.hash_array(np.array(streams, dtype=object)) if streams else np.zeros(0, dtype=np.uint64)
    words = _mixed(names[matrix.indices] ^ _mixed(matrix.data.view(np.uint64)))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    contents = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    contents = _mixed(contents) ^ queries.bound.view(np.uint64)
    contents = _mixed(contents) ^ queries.confidence.view(np.uint64)
    contents = _mixed(contents + queries.relative.astype(np.uint64))
    ids = _mixed(pd.util.hash_array(queries.ids.astype(str).astype(object)))
    return np.column_stack([ids, contents]).astype(np.uint64)


def _mixed(words: Fingerprints) -> Fingerprints:
    """A bijection in which every input bit affects every output bit (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)), dtype=np.uint64)
