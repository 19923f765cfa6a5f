"""Standing queries as a sparse matrix: a row of weights, a bound and a confidence each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.control.deferral.model import two_sided_quantile
from slackwater.errors import InvalidOption

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class QuerySet:
    """Queries by row: their ids, their weights (queries × streams) and what each promises.

    ``bound`` is absolute, or a fraction of the answer where ``relative``. A bound of zero is an answer at every tick.
    """

    ids: NDArray[Any]
    weights: sparse.csr_matrix
    bound: Floats
    relative: NDArray[np.bool_]
    confidence: Floats
    z: Floats
    width: int = field(init=False)  # how many streams every query has, or 0 where they differ

    def __post_init__(self) -> None:
        sizes = np.diff(self.weights.indptr)
        alike = len(sizes) > 0 and bool(np.all(sizes == sizes[0]))
        object.__setattr__(self, "width", int(sizes[0]) if alike else 0)

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.ids)

    @property
    def streams(self) -> int:
        """How many streams their weights know."""
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
        """Checked queries; single values hold for all.

        >>> QuerySet.of(np.array(["a"]), np.array([[0.5, 0.5]]), 1.0, 0.9).queries
        1
        """
        matrix = sparse.csr_matrix(weights, dtype=np.float64)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if not np.all(np.isfinite(matrix.data)):
            raise InvalidOption("invalid-weight", "a weight is not a finite number", "leave such rows out")
        size = len(ids)
        bounds = np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), size))
        confidences = np.array(np.broadcast_to(np.asarray(confidence, dtype=np.float64), size))
        if not np.all((bounds >= 0.0) & np.isfinite(bounds)):
            raise InvalidOption(
                "invalid-bound", f"within={_first(bounds, ~(bounds >= 0.0) | ~np.isfinite(bounds))} is not a bound",
                "use zero (an answer at every tick) or more",
            )  # fmt: skip
        if not np.all((confidences > 0.0) & (confidences < 1.0)):
            raise InvalidOption(
                "invalid-confidence",
                f"confidence={_first(confidences, ~((confidences > 0) & (confidences < 1)))} is not in (0, 1)",
                "use 0.9 or '95%'; for certainty use a bound of zero",
            )  # fmt: skip
        return cls(
            ids, matrix, bounds, np.array(np.broadcast_to(np.asarray(relative, dtype=np.bool_), size)), confidences,
            two_sided_quantile(confidences),
        )  # fmt: skip

    def rows(self, due: NDArray[np.int64]) -> sparse.csr_matrix:
        """The weights of some queries, in rising order."""
        return self.weights if len(due) == self.queries else some_rows(self.weights, due, self.width)

    def over(self, streams: int) -> QuerySet:
        """The same queries where more streams are known."""
        if streams == self.streams:
            return self
        old = self.weights
        wide = sparse.csr_matrix((old.data, old.indices, old.indptr), shape=(self.queries, streams))
        return QuerySet(self.ids, wide, self.bound, self.relative, self.confidence, self.z)


def some_rows(weights: sparse.csr_matrix, chosen: NDArray[np.int64], width: int) -> sparse.csr_matrix:
    """Some rows; where all have ``width`` entries, without looking at each."""
    if width == 0:
        return weights[chosen]
    data = np.take(weights.data.reshape(-1, width), chosen, axis=0).ravel()
    indices = np.take(weights.indices.reshape(-1, width), chosen, axis=0).ravel()
    starts = np.arange(0, len(data) + 1, width, dtype=indices.dtype)
    return sparse.csr_matrix((data, indices, starts), shape=(len(chosen), weights.shape[1]))


def _first(values: Floats, wrong: NDArray[np.bool_]) -> float:
    return float(values[np.flatnonzero(wrong)[0]])
