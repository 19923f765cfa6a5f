"""Rows on their way to their shard and results on their way back, packed: to Spark a parcel is one value.

Spark would shuffle, sort and convert row by row, and back again. What is left of that is a copy of each column, where
rows are handed to the task that packs them, and where results are read out of their parcels.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.kernel.windows import Results, Rows
from slackwater.kernel.windows.order import by_group, in_order
from slackwater.kernel.windows.rows import Ints
from slackwater.spark.worker.settle import settle_worker
from slackwater.spark.worker.state_text import as_text, from_text

PACKED_SCHEMA = "time timestamp, shard int, first bigint, rows string"
RESULTS = {"results": "binary", "count": "bigint", "start_us": "bigint", "end_us": "bigint"}
RESULTS_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in RESULTS.items())
_ARROW_SCHEMA = pa.schema(
    {"time": pa.timestamp("us", tz="UTC"), "shard": pa.int32(), "first": pa.int64(), "rows": pa.string()}
)
_ROWS_AT_ONCE = 1 << 19
_CLOSE = 1 << 16  # numbers this close are counted in an array, which takes less than looking each of them up
_MIX = np.uint64(0x9E3779B97F4A7C15)

Key = str | int | None
Packed = tuple[int, str]
"""The least attribute of its rows; their keys and themselves, arranged, as text, since it may wait as it is."""


def packer(
    numbers: list[int], grouped: bool, reduce: Callable[[Rows], Rows] | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: rows of (attribute, key, inputs …) in, parcels out; of rows, or of what they reduce to.

    ``numbers`` are those of the shards. Rows are in order, ``grouped`` in that of their groups. A parcel has the time
    of its newest row, since it travels beside the heartbeat, whose time is the watermark.
    """

    def pack_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(part.num_rows for part in waiting) >= _ROWS_AT_ONCE:
                yield _packed(pa.Table.from_batches(waiting), numbers, grouped, reduce)
                waiting = []
        if any(part.num_rows for part in waiting):
            yield _packed(pa.Table.from_batches(waiting), numbers, grouped, reduce)

    return pack_all


def pack_results(out: Results, keys: list[Key]) -> bytes:
    """Results as one parcel, in few bytes; ``keys`` holds the names of their groups."""
    code, names = out.keys, keys
    if len(keys) > len(out):
        mine, code = np.unique(out.keys, return_inverse=True)
        names = [keys[number] for number in mine.tolist()]
    lengths = out.end - out.start
    same = bool((lengths == lengths[0]).all())
    values = out.aggregates if same else (*out.aggregates, lengths.astype(np.float64))
    head = json.dumps({"names": names, "length": int(lengths[0]) if same else None}).encode()
    return head + b"\n" + Rows(out.end, code, values).to_bytes()


def result_opener(
    whole: bool, *, starts: bool = True
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: parcels of results in, results of (start, end, key, values …) out, or without ``starts``."""

    def open_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for batch in batches:
            for packed in batch.column(0):
                yield opened(packed.as_buffer().to_pybytes(), whole, starts=starts)

    return open_all


def opened(packed: bytes, whole: bool, *, starts: bool = True) -> pa.RecordBatch:
    """The results of a parcel; their keys are whole numbers, or texts."""
    head, _, packed = packed.partition(b"\n")
    said, rows = json.loads(head), Rows.from_bytes(packed)
    names, end, values = pa.array(said["names"], pa.int64() if whole else pa.string()), rows.attribute, rows.values
    lengths: Ints | int = said["length"]
    if said["length"] is None:
        lengths, values = values[-1].astype(np.int64), values[:-1]
    columns = {"start": pa.array(end - lengths)} if starts else {}
    columns |= {"end": pa.array(end), "key": names.take(pa.array(rows.keys))}
    columns |= {f"value_{i}": pa.array(column) for i, column in enumerate(values)}
    return pa.RecordBatch.from_pydict(columns)


def sealed(names: list[Key], rows: Rows) -> Packed:
    """A parcel of arranged rows; ``names`` holds the keys that they count.

    >>> _, text = sealed(["a", None], Rows.of([5, 7], [0, 1], [[1.0, np.nan]]))
    >>> names, rows = unsealed(text)
    >>> names, rows.attribute.tolist(), rows.keys.tolist(), rows.values[0].tolist()
    (['a', None], [5, 7], [0, 1], [1.0, nan])
    """
    packed = json.dumps(names).encode() + b"\n" + rows.to_bytes()
    return int(rows.attribute.min()), as_text(packed, "zstd")


def unsealed(text: str) -> tuple[list[Key], Rows]:
    """The keys of a parcel, and its rows, each with the place of its key among them."""
    packed = from_text(text, "zstd")
    start = packed.index(b"\n") + 1
    return json.loads(packed[:start]), Rows.from_bytes(packed, start)


def together(packed_rows: Sequence[Packed], grouped: bool) -> Packed:
    """Several parcels as one; rows that are equal in time stay in the order of their parcels."""
    numbers: dict[Key, int] = {}
    rows = numbered((unsealed(text) for _, text in packed_rows), numbers)
    return sealed(list(numbers), by_group(rows)[0] if grouped else in_order(rows))


def numbered(parts: Iterable[tuple[list[Key], Rows]], numbers: dict[Key, int]) -> Rows:
    """Rows of several parcels behind one another, their keys numbered alike; ``numbers`` learns those that are new."""
    found = []
    for names, rows in parts:
        own = np.array([numbers.setdefault(key, len(numbers)) for key in names], dtype=np.int64)
        found.append(Rows(rows.attribute, own[rows.keys], rows.values))
    return Rows.concat(found, len(found[0].values) if found else 0)


def _packed(
    table: pa.Table, numbers: list[int], grouped: bool, reduce: Callable[[Rows], Rows] | None
) -> pa.RecordBatch:
    at, key, *values = table.combine_chunks().columns
    keys, codes = _counted(key.combine_chunks())
    owner = _shards_of(keys, len(numbers))
    # keys in the order of their shards: those of a shard are neighbours, and a row's is counted from their first
    by_shard = np.argsort(owner, kind="stable")
    rank = np.empty(len(keys), dtype=np.int64)
    rank[by_shard] = np.arange(len(keys))
    rows = Rows.of(at.to_numpy(), rank[codes], [value.to_numpy() for value in values])
    if reduce is not None:
        rows = reduce(rows)
    shard_of = owner[by_shard].astype(np.int64)
    if grouped:
        rows, _ = by_group(rows)
    else:
        rows = rows.take(by_group(Rows(rows.attribute, shard_of[rows.keys], ()))[1])
    ends = np.cumsum(np.bincount(shard_of[rows.keys], minlength=len(numbers))).tolist()
    key_ends = np.cumsum(np.bincount(owner, minlength=len(numbers))).tolist()
    times, owners, firsts, packed_rows = [], [], [], []
    for shard, number in enumerate(numbers):
        start, first = (ends[shard - 1], key_ends[shard - 1]) if shard else (0, 0)
        if ends[shard] == start:
            continue
        part = rows.take(slice(start, ends[shard]))
        names = [keys[i] for i in by_shard[first : key_ends[shard]].tolist()]
        least, text = sealed(names, Rows(part.attribute, part.keys - first, part.values))
        times.append(int(part.attribute.max()))
        owners.append(number)
        firsts.append(least)
        packed_rows.append(text)
    columns = zip((times, owners, firsts, packed_rows), _ARROW_SCHEMA, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(c, field.type) for c, field in columns], schema=_ARROW_SCHEMA)


def _counted(key: pa.Array) -> tuple[list[Key], Ints]:
    """The keys that there are, and which of them each row has."""
    if pa.types.is_integer(key.type) and not key.null_count:
        whole = key.to_numpy()
        low = int(whole.min())
        if int(whole.max()) - low < _CLOSE:
            counts = np.bincount(whole - low)
            found = np.flatnonzero(counts)
            code = np.empty(len(counts), dtype=np.int64)
            code[found] = np.arange(len(found))
            return list((found + low).tolist()), code[whole - low]
    encoded = key.dictionary_encode(null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _shards_of(keys: list[Key], shards: int) -> NDArray[np.uint16]:
    """The shard of each key: the same in every micro-batch and on every machine."""
    if keys and isinstance(keys[0], int):
        whole = np.array(keys, dtype=np.int64).view(np.uint64)
        with np.errstate(over="ignore"):
            hashed = ((whole ^ (whole >> np.uint64(32))) * _MIX) >> np.uint64(32)
    else:
        hashed = np.array([zlib.crc32(str(key).encode()) for key in keys], dtype=np.uint64)
    return np.asarray(hashed % np.uint64(shards), dtype=np.uint16)
