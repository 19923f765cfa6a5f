"""A histogram of where rows lie around the heartbeat, small enough to come back with every micro-batch.

Each row falls into a cell by the eighth root of its margin (event time − heartbeat) in microseconds: as fine as a
microsecond at the heartbeat, where the next decision is taken, 1.1 % wide at a second and 0.4 % at an hour (four times
that where sources are told apart). Three square roots cost a row less than one logarithm. Negative cells are exactly
the late rows. ``approx_top_k`` counts the cells: a frequent-items sketch is exact while it has room for every distinct
item, and there are never more cells than that.

Where micro-batches are very large, of the rows far ahead of the heartbeat (before the first one: of all valid rows)
only one in sixteen is counted by its cell: late rows, invalid rows, rows near the heartbeat, and how many rows there
are at all stay exact. Which rows are counted is told by a hash of their event time, so that coarse event times (whole
seconds, say) could be told of by a few of them, or by none. Hence probes: some rows are counted by a further hash
instead of their cell, and a micro-batch with too few different ones of those is not learned from, nor thinned again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

from slackwater.names import quoted
from slackwater.spark.worker.sampling import CELLS_PER_UNIT, FAR_US

_CELLS_PER_UNIT_WITH_SOURCES = 32
_CELLS_A_SIDE = 1 << 15
"""More than any two timestamps that Spark knows (years 1 to 9999) are apart."""
INVALID_CELL = _CELLS_A_SIDE
_PROBES = 64
_ENOUGH_PROBES = 40
"""So many differ where some 60 or more different event times were hashed, one in 256 of all."""
_FIRST_PROBE = INVALID_CELL + 1
_KEEP = 2 * _CELLS_A_SIDE + 1 + _PROBES
_ONE_IN = 16
_ONE_PROBE_IN = 256
_SAMPLE_FROM_ROWS = 1_000_000
_SOURCE_STRIDE = 4 * _CELLS_A_SIDE
_SOURCE_HASHES = 1 << 32
_KEEP_WITH_SOURCES = 100_000
_NULLS_COUNTED_FROM = (4, 3)
"""The version of Spark whose ``approx_top_k`` says how many nulls there were."""


def cell_column(event_us: Column, margin_us: Column, valid: Column, thinned: Column, sources: list[str]) -> Column:
    """The cell of each row, null if it is not to be counted by it. A null ``valid`` is not valid.

    Only valid rows may be among the ``thinned``: a row that is passed over is told from the others by a few
    instructions and goes through no others. Rows of different sources fall into different cells, and are always
    counted. A hash, since Spark compiles a plan with ``rand()`` anew for each micro-batch.
    """
    root = F.sqrt(F.sqrt(F.sqrt(F.abs(margin_us.cast("double")))))
    signed = F.signum(margin_us.cast("double")) * root
    cell = F.floor(signed * float(_CELLS_PER_UNIT_WITH_SOURCES if sources else CELLS_PER_UNIT)).cast("int")
    if not sources:
        hashed = F.hash(event_us)
        unlucky = hashed.bitwiseAND(_ONE_IN - 1) != 0
        probed = hashed.bitwiseAND(_ONE_PROBE_IN - 1) == 0
        probe = F.shiftrightunsigned(hashed, 8).bitwiseAND(_PROBES - 1) + _FIRST_PROBE
        passed_over = F.when(thinned & unlucky, F.lit(None).cast("int")).when(thinned & probed, probe)
        return passed_over.when(valid, cell).otherwise(INVALID_CELL)
    cell = F.when(valid, cell).otherwise(INVALID_CELL)
    return _source(sources) * _SOURCE_STRIDE + cell.cast("bigint") + _CELLS_A_SIDE


def _source(sources: list[str]) -> Column:
    return F.pmod(F.xxhash64(*sources), F.lit(_SOURCE_HASHES))


def named_sources(column: str, sources: list[str]) -> list[Column]:
    """Aggregates that name two of a micro-batch's sources: that of its oldest row, and any one.

    Cells know sources by number. Two names a micro-batch cost next to nothing, and after some all are known, the one
    that is behind first.
    """
    name = F.concat_ws(", ", *(F.col(quoted(source)).cast("string") for source in sources))
    named, time = F.struct(_source(sources).alias("source"), name.alias("name")), F.col(quoted(column))
    return [F.min_by(named, time).alias("oldest"), F.min_by(named, F.xxhash64(time)).alias("any_one")]


def is_valid(cell: Column, sources: list[str]) -> Column:
    """Whether the row of that cell has an event time that can be meant."""
    if not sources:
        return ~cell.eqNullSafe(INVALID_CELL)
    return F.pmod(cell, F.lit(_SOURCE_STRIDE)) != INVALID_CELL + _CELLS_A_SIDE


def count_cells(cell: Column, sources: list[str], spark_version: str) -> list[Column]:
    """The aggregates that count the cells, as ``[(item, count), …]``, and all rows.

    ``observe`` interprets each aggregate, some 30 ns a row: where the first counts nulls too, there is no second.
    """
    keep = _KEEP_WITH_SOURCES if sources else _KEEP
    counted = [F.call_function("approx_top_k", cell, F.lit(keep), F.lit(keep)).alias("cells")]
    if tuple(int(part) for part in spark_version.split(".")[:2]) < _NULLS_COUNTED_FROM:
        counted.append(F.count(F.lit(1)).alias("rows"))
    return counted


@dataclass(frozen=True, slots=True)
class Cells:
    """Counted cells: the margin of each (its lower edge, so that a row is never taken for fresher than it is).

    ``unplaced`` rows are on time and valid, and in no cell: those that were counted do not tell of them.
    """

    margins_us: NDArray[np.float64]
    counts: NDArray[np.int64]
    sources: NDArray[np.int64] | None
    below: int
    invalid: int
    unplaced: int = 0

    @property
    def rows(self) -> int:
        """All valid rows."""
        return int(self.counts.sum()) + self.unplaced

    @property
    def can_be_sampled(self) -> bool:
        """Whether a micro-batch like this one would be told of well enough by a sixteenth of its far rows."""
        return self.sources is None and not self.unplaced and self.rows >= _SAMPLE_FROM_ROWS


def decode_cells(
    counted: Iterable[tuple[int | None, int]],
    with_sources: bool,
    rows: int | None = None,
    sample_from_us: float = FAR_US,
) -> Cells:
    """The cells of one micro-batch from what ``count_cells`` observed; ``rows`` if nulls were not counted.

    Rows that were not counted by their cells are spread over the cells from the margin ``sample_from_us`` on, as those
    are that were. Where sources are told apart there are none.

    >>> cells = decode_cells([(0, 5), (-128, 2), (INVALID_CELL, 1)], with_sources=False)
    >>> cells.below, cells.invalid, cells.margins_us.tolist(), cells.counts.tolist()
    (2, 1, [0.0, -1.0], [5, 2])
    >>> probes = [(INVALID_CELL + 1 + i, 1) for i in range(64)]
    >>> decode_cells([(0, 5), (1000, 2), (2000, 1), *probes], with_sources=False, rows=95).counts.tolist()
    [5, 60, 30]
    >>> decode_cells([(None, 23), (0, 5), (1000, 2), (2000, 1), *probes], with_sources=False).counts.tolist()
    [5, 60, 30]
    """
    everything = list(counted)
    all_rows = sum(int(count) for _, count in everything) if rows is None else rows
    pairs = [(int(item), int(count)) for item, count in everything if item is not None]
    codes, counts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    sources = None
    if with_sources:
        sources, codes = codes // _SOURCE_STRIDE, codes % _SOURCE_STRIDE - _CELLS_A_SIDE
    invalid = int(counts[codes == INVALID_CELL].sum())
    placed, probes = codes < INVALID_CELL, int(np.count_nonzero(codes >= _FIRST_PROBE))
    codes, counts = codes[placed], counts[placed]
    edges = np.sign(codes) * (codes / (_CELLS_PER_UNIT_WITH_SOURCES if with_sources else CELLS_PER_UNIT)) ** 8
    unplaced = 0 if with_sources else all_rows - invalid - int(counts.sum())
    if unplaced:
        far = edges > sample_from_us - 1  # the cell that begins there begins at a fraction of a microsecond
        if probes >= _ENOUGH_PROBES and far.any():
            counts, unplaced = _with_uncounted(counts, far, unplaced), 0
        else:
            edges, unplaced, counts, codes = edges[~far], unplaced + int(counts[far].sum()), counts[~far], codes[~far]
    below = int(counts[codes < 0].sum())
    return Cells(edges, counts, None if sources is None else sources[placed], below, invalid, unplaced)


def _with_uncounted(counts: NDArray[np.int64], far: NDArray[np.bool_], uncounted: int) -> NDArray[np.int64]:
    up_to = np.cumsum(counts[far])
    spread = counts.copy()
    spread[far] += np.diff(np.rint(up_to * (uncounted / up_to[-1])).astype(np.int64), prepend=0)
    return spread
