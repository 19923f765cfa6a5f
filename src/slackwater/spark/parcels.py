"""Rows on their way to their shard and results on their way back, packed: to Spark a parcel is one value.

Spark would shuffle, sort and convert row by row, and back again. What is left of that is a copy of each column, where
rows are handed to the task that packs them, and where results are read out of their parcels.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.kernel import Results, Rows
from slackwater.spark.sharding import shard_keys

PARCEL_SCHEMA = "time timestamp, shard int, names string, rows binary"
RESULTS_SCHEMA = "results binary, count bigint, start_us bigint, end_us bigint"
_ARROW_SCHEMA = pa.schema(
    {"time": pa.timestamp("us", tz="UTC"), "shard": pa.int32(), "names": pa.string(), "rows": pa.binary()}
)
_ROWS_AT_ONCE = 1 << 19
_MIX = np.uint64(0x9E3779B97F4A7C15)

Key = str | int | None


def packer(
    shards: int, reduce: Callable[[Rows], Rows] | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: rows of (attribute, key, inputs …) in, parcels out; of rows, or of what they reduce to.

    The time of a parcel is its newest row's: no older than the heartbeat, so that Spark keeps it.
    """
    numbers = shard_keys(shards)

    def pack_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(part.num_rows for part in waiting) >= _ROWS_AT_ONCE:
                yield _packed(pa.Table.from_batches(waiting), numbers, reduce)
                waiting = []
        if any(part.num_rows for part in waiting):
            yield _packed(pa.Table.from_batches(waiting), numbers, reduce)

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


def result_opener(whole: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: parcels of results in, results of (start, end, key, values …) out."""

    def open_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for parcel in batch.column(0):
                yield opened(parcel.as_buffer().to_pybytes(), whole)

    return open_all


def opened(parcel: bytes, whole: bool) -> pa.RecordBatch:
    """The results of a parcel; their keys are whole numbers, or texts."""
    head, _, packed = parcel.partition(b"\n")
    said, rows = json.loads(head), Rows.from_bytes(packed)
    names, end, values = pa.array(said["names"], pa.int64() if whole else pa.string()), rows.attribute, rows.values
    if said["length"] is None:
        start, values = end - values[-1].astype(np.int64), values[:-1]
    else:
        start = end - said["length"]
    columns = {f"value_{i}": pa.array(column) for i, column in enumerate(values)}
    key = names.take(pa.array(rows.keys))
    return pa.RecordBatch.from_pydict({"start": pa.array(start), "end": pa.array(end), "key": key, **columns})


def unpacked(names: str, rows: bytes) -> tuple[list[Key], Rows]:
    """The keys of a parcel, and its rows, each with the place of its key among them.

    >>> table = pa.table({"at": [5, 7, 6], "key": ["a", None, "a"], "input_0": [1.0, None, 3.0]})
    >>> (parcel,) = _packed(table, [0]).to_pylist()
    >>> keys, rows = unpacked(parcel["names"], parcel["rows"])
    >>> keys, rows.attribute.tolist(), rows.keys.tolist(), rows.values[0].tolist()
    (['a', None], [5, 7, 6], [0, 1, 0], [1.0, nan, 3.0])
    """
    return json.loads(names), Rows.from_bytes(rows)


def _packed(table: pa.Table, numbers: list[int], reduce: Callable[[Rows], Rows] | None = None) -> pa.RecordBatch:
    at, key, *values = table.combine_chunks().columns
    encoded = key.combine_chunks().dictionary_encode(null_encoding="encode")
    keys: list[Key] = encoded.dictionary.to_pylist()
    owner = _shards_of(keys, len(numbers))
    # keys in the order of their shards: those of a shard are neighbours, and a row's is counted from their first
    by_shard = np.argsort(owner, kind="stable")
    rank = np.empty(len(keys), dtype=np.int64)
    rank[by_shard] = np.arange(len(keys))
    rows = Rows.of(at.to_numpy(), rank[encoded.indices.to_numpy()], [value.to_numpy() for value in values])
    if reduce is not None:
        rows = reduce(rows)
    shard_of = owner[by_shard][rows.keys]
    rows = rows.take(np.argsort(shard_of, kind="stable"))
    ends = np.cumsum(np.bincount(shard_of, minlength=len(numbers))).tolist()
    key_ends = np.cumsum(np.bincount(owner, minlength=len(numbers))).tolist()
    times, owners, names, parcels = [], [], [], []
    for shard, number in enumerate(numbers):
        start, first = (ends[shard - 1], key_ends[shard - 1]) if shard else (0, 0)
        if ends[shard] == start:
            continue
        part = rows.take(slice(start, ends[shard]))
        times.append(int(part.attribute.max()))
        owners.append(number)
        names.append(json.dumps([keys[i] for i in by_shard[first : key_ends[shard]].tolist()]))
        parcels.append(Rows(part.attribute, part.keys - first, part.values).to_bytes())
    columns = zip((times, owners, names, parcels), _ARROW_SCHEMA, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(c, field.type) for c, field in columns], schema=_ARROW_SCHEMA)


def _shards_of(keys: list[Key], shards: int) -> NDArray[np.uint16]:
    """The shard of each key: the same in every micro-batch and on every machine."""
    if keys and isinstance(keys[0], int):
        whole = np.array(keys, dtype=np.int64).view(np.uint64)
        with np.errstate(over="ignore"):
            hashed = ((whole ^ (whole >> np.uint64(32))) * _MIX) >> np.uint64(32)
    else:
        hashed = np.array([zlib.crc32(str(key).encode()) for key in keys], dtype=np.uint64)
    return np.asarray(hashed % np.uint64(shards), dtype=np.uint16)
