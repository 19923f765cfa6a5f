"""A histogram of event times around the heartbeat, small enough to be observed in every micro-batch.

A row's cell is the eighth root of its margin (event time − reference, in microseconds): 1 µs wide at the heartbeat,
where the next decision is made, 1.1 % wide at a second and 0.4 % at an hour (four times that with sources). Three
square roots cost less per row than a logarithm. Cells below zero are exactly the late rows. ``approx_top_k`` counts the
cells; it is exact, because it has room for every possible cell.

In large micro-batches only one in sixteen of the rows far ahead of the heartbeat is counted in its cell (before
the first heartbeat: of all valid rows). Late rows, invalid rows, rows near the heartbeat and the number of rows stay
exact. A hash of the event time chooses the sample, so coarse event times (whole seconds, say) might be represented by
few rows or none. Probes detect that: some rows are counted under a second hash instead of their cell. A micro-batch
with too few different probes is not learned from, and the histogram is not sampled again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

from slackwater.names import quoted
from slackwater.spark.worker.sampling import CELLS_PER_UNIT, FAR_US

_CELLS_PER_UNIT_WITH_SOURCES = 32
_CELLS_PER_SIDE = 1 << 15
"""Covers the distance between any two timestamps of Spark (years 1 to 9999)."""
INVALID_CELL = _CELLS_PER_SIDE
_PROBES = 64
_ENOUGH_PROBES = 40
"""Different probes that show some 60 or more different event times in the sample."""
_FIRST_PROBE = INVALID_CELL + 1
_MOST_CELLS = 2 * _CELLS_PER_SIDE + 1 + _PROBES
SAMPLE_ONE_IN = 16
_PROBE_ONE_IN = 256
_SAMPLE_FROM_ROWS = 100_000
_SOURCE_STRIDE = 4 * _CELLS_PER_SIDE
_SOURCE_HASHES = 1 << 32
_MOST_CELLS_WITH_SOURCES = 100_000
_NULLS_COUNTED_FROM = (4, 3)
"""The version of Spark whose ``approx_top_k`` also counts nulls."""


def cell_column(event_us: Column, margin_us: Column, valid: Column, sampled: Column, sources: list[str]) -> Column:
    """The cell of each row; null for rows outside the sample.

    :param event_us: the event time.
    :param margin_us: its distance from the reference.
    :param valid: whether the event time is possible; null counts as not valid.
    :param sampled: whether the row may be left to the sample; only for valid rows.
    :param sources: columns that identify sources. With sources there is no sample, and each source has its own cells.

    The sample is chosen by a hash: Spark would compile a plan with ``rand()`` again in every micro-batch.
    """
    root = F.sqrt(F.sqrt(F.sqrt(F.abs(margin_us.cast("double")))))
    signed = F.signum(margin_us.cast("double")) * root
    cell = F.floor(signed * float(_CELLS_PER_UNIT_WITH_SOURCES if sources else CELLS_PER_UNIT)).cast("int")
    if not sources:
        hashed, skipped = F.hash(event_us), ~is_drawn(event_us)
        probed = hashed.bitwiseAND(_PROBE_ONE_IN - 1) == 0
        probe = F.shiftrightunsigned(hashed, 8).bitwiseAND(_PROBES - 1) + _FIRST_PROBE
        passed_over = F.when(sampled & skipped, F.lit(None).cast("int")).when(sampled & probed, probe)
        return passed_over.when(valid, cell).otherwise(INVALID_CELL)
    cell = F.when(valid, cell).otherwise(INVALID_CELL)
    return source_number(sources) * _SOURCE_STRIDE + cell.cast("bigint") + _CELLS_PER_SIDE


def is_drawn(event_us: Column) -> Column:
    """Whether a row is in the sample."""
    return F.hash(event_us).bitwiseAND(SAMPLE_ONE_IN - 1) == 0


def source_number(sources: list[str]) -> Column:
    """The number by which the driver knows the source of a row."""
    return F.pmod(F.xxhash64(*sources), F.lit(_SOURCE_HASHES))


def named_sources(column: str, sources: list[str]) -> list[Column]:
    """Aggregates that name two sources per micro-batch: the one of the oldest row, and an arbitrary one.

    Cells know sources by number only. After some micro-batches every source has its name, a slow one first.
    """
    name = F.concat_ws(", ", *(F.col(quoted(source)).cast("string") for source in sources))
    named, time = F.struct(source_number(sources).alias("source"), name.alias("name")), F.col(quoted(column))
    return [F.min_by(named, time).alias("oldest"), F.min_by(named, F.xxhash64(time)).alias("any_one")]


def is_valid(cell: Column, sources: list[str]) -> Column:
    """Whether the row in that cell has a possible event time."""
    if not sources:
        return ~cell.eqNullSafe(INVALID_CELL)
    return F.pmod(cell, F.lit(_SOURCE_STRIDE)) != INVALID_CELL + _CELLS_PER_SIDE


def count_cells(cell: Column, sources: list[str], spark_version: str) -> list[Column]:
    """Aggregates that count the cells, as ``[(item, count), …]``, and all rows.

    ``observe`` interprets each aggregate at some 30 ns per row, so there is no second one where the first counts nulls.
    """
    keep = _MOST_CELLS_WITH_SOURCES if sources else _MOST_CELLS
    counted = [F.call_function("approx_top_k", cell, F.lit(keep), F.lit(keep)).alias("cells")]
    if tuple(int(part) for part in spark_version.split(".")[:2]) < _NULLS_COUNTED_FROM:
        counted.append(F.count(F.lit(1)).alias("rows"))
    return counted


@dataclass(frozen=True, slots=True)
class Cells:
    """The histogram of one micro-batch.

    ``margins_us`` is the lower edge of each cell, so that no row appears fresher than it is. ``below`` counts late
    rows. ``unplaced`` rows are on time and valid, but the sample cannot represent them. ``invalid_by_source`` are pairs
    of source and invalid rows. ``newest_us`` is the upper edge of the highest cell: no row is above it, unless the rows
    were ``sampled``.
    """

    margins_us: NDArray[np.float64]
    counts: NDArray[np.int64]
    sources: NDArray[np.int64] | None
    below: int
    invalid: int
    unplaced: int = 0
    invalid_by_source: tuple[tuple[int, int], ...] = ()
    newest_us: float = -math.inf
    sampled: bool = False

    @property
    def rows(self) -> int:
        """All valid rows."""
        return int(self.counts.sum()) + self.unplaced

    @property
    def can_be_sampled(self) -> bool:
        """Whether a sample of the far rows would describe a micro-batch like this one well enough."""
        return self.sources is None and not self.unplaced and self.rows >= _SAMPLE_FROM_ROWS


def decode_cells(
    counted: Iterable[tuple[int | None, int]],
    with_sources: bool,
    rows: int | None = None,
    sample_from_us: float = FAR_US,
) -> Cells:
    """The histogram of one micro-batch from what ``count_cells`` observed.

    :param counted: pairs of cell and count; the null cell holds the rows outside the sample.
    :param with_sources: whether cells carry a source.
    :param rows: all rows, where nulls were not counted.
    :param sample_from_us: the margin from which rows were sampled. Rows outside the sample are spread over the cells
        from there on in proportion to their counts.

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
        sources, codes = codes // _SOURCE_STRIDE, codes % _SOURCE_STRIDE - _CELLS_PER_SIDE
    is_invalid = codes == INVALID_CELL
    invalid = int(counts[is_invalid].sum())
    invalid_by_source: tuple[tuple[int, int], ...] = ()
    if sources is not None:
        invalid_by_source = tuple(zip(sources[is_invalid].tolist(), counts[is_invalid].tolist(), strict=True))
    placed, probes = codes < INVALID_CELL, int(np.count_nonzero(codes >= _FIRST_PROBE))
    codes, counts = codes[placed], counts[placed]
    per_unit = _CELLS_PER_UNIT_WITH_SOURCES if with_sources else CELLS_PER_UNIT
    edges = _edges_us(codes, per_unit)
    newest_us = float(_edges_us(codes + 1, per_unit).max(initial=-math.inf))
    unplaced = 0 if with_sources else all_rows - invalid - int(counts.sum())
    if unplaced:
        far = edges > sample_from_us - 1  # a cell begins at a fraction of a microsecond
        if probes >= _ENOUGH_PROBES and far.any():
            counts, unplaced = _scaled_up(counts, far, unplaced), 0
        else:
            edges, unplaced, counts, codes = edges[~far], unplaced + int(counts[far].sum()), counts[~far], codes[~far]
    below = int(counts[codes < 0].sum())
    placed_sources = None if sources is None else sources[placed]
    return Cells(
        edges, counts, placed_sources, below, invalid, unplaced, invalid_by_source, newest_us, sampled=probes > 0
    )


def _edges_us(codes: NDArray[np.int64], per_unit: int) -> NDArray[np.float64]:
    """The lower edges of cells, as margins."""
    return np.asarray(np.sign(codes) * (codes / per_unit) ** 8, dtype=np.float64)


def _scaled_up(counts: NDArray[np.int64], far: NDArray[np.bool_], uncounted: int) -> NDArray[np.int64]:
    up_to = np.cumsum(counts[far])
    spread = counts.copy()
    spread[far] += np.diff(np.rint(up_to * (uncounted / up_to[-1])).astype(np.int64), prepend=0)
    return spread
