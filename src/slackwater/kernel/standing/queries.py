"""Standing queries as a sparse matrix: each has a row of weights, a bound and a confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.control.deferral.model import two_sided_quantile
from slackwater.errors import InvalidOption

Floats = NDArray[np.float64]
Members = Literal["all", "sum", "average"]


@dataclass(frozen=True, slots=True, eq=False)
class QuerySet:
    """Ids, weights (queries × streams) and promises, one row per query.

    ``bound`` is absolute, or a fraction of the answer where ``relative``. A query with a bound of zero is evaluated at
    every tick. ``z`` is the two-sided normal quantile of the confidence.

    ``members`` says what holds before the first row of a stream: with ``all`` its queries have no value yet; in a
    ``sum`` or an ``average`` the stream is not a member yet.
    """

    ids: NDArray[Any]
    weights: sparse.csr_matrix
    bound: Floats
    relative: NDArray[np.bool_]
    confidence: Floats
    z: Floats
    members: Members = "all"

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.ids)

    @property
    def streams(self) -> int:
        """The number of streams, that is, the columns of the weights."""
        return int(self.weights.shape[1])

    @classmethod
    def of(
        cls,
        ids: NDArray[Any],
        weights: Any,
        bound: float | Floats,
        confidence: float | Floats,
        relative: bool | NDArray[np.bool_] = False,
    ) -> QuerySet:
        """Checked queries. A single bound, confidence or ``relative`` applies to all of them.

        >>> QuerySet.of(np.array(["a"]), np.array([[0.5, 0.5]]), 1.0, 0.9).queries
        1
        """
        matrix = sparse.csr_matrix(weights, dtype=np.float64)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if not np.all(np.isfinite(matrix.data)):
            raise InvalidOption("invalid-weight", "a weight is not a finite number", "leave out such rows")
        size = len(ids)
        bounds = np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), size))
        confidences = np.array(np.broadcast_to(np.asarray(confidence, dtype=np.float64), size))
        bad_bound = ~((bounds >= 0.0) & np.isfinite(bounds))
        if np.any(bad_bound):
            raise InvalidOption(
                "invalid-bound",
                f"within={bounds[bad_bound][0]} is not a bound",
                "use zero (an answer at every tick) or more",
            )
        bad_confidence = ~((confidences > 0.0) & (confidences < 1.0))
        if np.any(bad_confidence):
            raise InvalidOption(
                "invalid-confidence",
                f"confidence={confidences[bad_confidence][0]} is not between 0 and 1",
                "use 0.9 or '95%'; for exact answers use a bound of 0",
            )
        relatives = np.array(np.broadcast_to(np.asarray(relative, dtype=np.bool_), size))
        return cls(ids, matrix, bounds, relatives, confidences, two_sided_quantile(confidences))

    def rows(self, due: NDArray[np.int64]) -> sparse.csr_matrix:
        """The weights of some queries, given in rising order."""
        return self.weights if len(due) == self.queries else self.weights[due]

    def over(self, streams: int) -> QuerySet:
        """The same queries with more columns, for streams that became known later."""
        if streams == self.streams:
            return self
        old = self.weights
        wide = sparse.csr_matrix((old.data, old.indices, old.indptr), shape=(self.queries, streams))
        return replace(self, weights=wide)
