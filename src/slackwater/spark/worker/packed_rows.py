"""Rows on their way to a shard, and results on their way back, packed into one value for Spark.

Spark would otherwise shuffle, sort and convert them row by row. Packed, the remaining cost is a copy of each column
when rows are packed and when results are unpacked.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

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
RESULTS |= {"late": "bigint", "held": "bigint"}  # of the slack buffer, in a row without results
RESULTS_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in RESULTS.items())
_ARROW_SCHEMA = pa.schema(
    {"time": pa.timestamp("us", tz="UTC"), "shard": pa.int32(), "first": pa.int64(), "rows": pa.string()}
)
_ROWS_AT_ONCE = 1 << 19
_MAX_DENSE_SPAN = 1 << 16  # integer keys within this span are coded by an array, which is faster than a dictionary
_MIX = np.uint64(0x9E3779B97F4A7C15)

Key = str | int | None
Reduce = Callable[[Rows], Rows]
MapBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class KeyedRows(NamedTuple):
    """Rows and the group keys that they refer to: the key of row i is ``keys[rows.keys[i]]``."""

    keys: list[Key]
    rows: Rows


class PackedRows(NamedTuple):
    """Sorted rows and their keys as text, which Spark can keep in its state; and the smallest attribute."""

    first: int
    text: str


def rows_packer(shards: list[int], grouped: bool, reduce: Reduce | None = None) -> MapBatches:
    """A function for ``mapInArrow`` that packs batches of (attribute, key, inputs …) by shard.

    A packed row has the time of its newest row, because it travels beside the heartbeat, whose time is the watermark.

    :param shards: the keys of the shards.
    :param grouped: sort the rows by group and attribute, not by attribute alone.
    :param reduce: applied to the rows before they are packed.
    """

    def pack_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        pending: list[pa.RecordBatch] = []
        for batch in batches:
            pending.append(batch)
            if sum(part.num_rows for part in pending) >= _ROWS_AT_ONCE:
                yield _pack_by_shard(pa.Table.from_batches(pending), shards, grouped, reduce)
                pending = []
        if any(part.num_rows for part in pending):
            yield _pack_by_shard(pa.Table.from_batches(pending), shards, grouped, reduce)

    return pack_all


def pack_results(results: Results, keys: list[Key]) -> bytes:
    """Results in few bytes; ``results.keys`` are positions in ``keys``. There is at least one result."""
    codes, names = results.keys, keys
    if len(keys) > len(results):
        used, codes = np.unique(results.keys, return_inverse=True)
        names = [keys[code] for code in used.tolist()]
    lengths = results.end - results.start
    same = bool((lengths == lengths[0]).all())
    values = results.aggregates if same else (*results.aggregates, lengths.astype(np.float64))
    head = json.dumps({"keys": names, "length": int(lengths[0]) if same else None}).encode()
    return head + b"\n" + Rows(results.end, codes, values).to_bytes()


def results_unpacker(integer_keys: bool, *, starts: bool = True) -> MapBatches:
    """A function for ``mapInArrow`` that unpacks results to (start, end, key, values …), or without ``starts``."""

    def unpack_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for batch in batches:
            for packed in batch.column(0):
                yield unpack_results(packed.as_buffer().to_pybytes(), integer_keys, starts=starts)

    return unpack_all


def unpack_results(packed: bytes, integer_keys: bool, *, starts: bool = True) -> pa.RecordBatch:
    """Read what ``pack_results`` wrote. Keys are integers or texts."""
    head_text, _, body = packed.partition(b"\n")
    head, rows = json.loads(head_text), Rows.from_bytes(body)
    keys, end, values = pa.array(head["keys"], pa.int64() if integer_keys else pa.string()), rows.attribute, rows.values
    lengths: Ints | int = head["length"]
    if head["length"] is None:
        lengths, values = values[-1].astype(np.int64), values[:-1]
    columns = {"start": pa.array(end - lengths)} if starts else {}
    columns |= {"end": pa.array(end), "key": keys.take(pa.array(rows.keys))}
    columns |= {f"value_{i}": pa.array(column) for i, column in enumerate(values)}
    return pa.RecordBatch.from_pydict(columns)


def pack_rows(keys: list[Key], rows: Rows) -> PackedRows:
    """Pack sorted rows; there is at least one.

    >>> packed = pack_rows(["a", None], Rows.of([5, 7], [0, 1], [[1.0, np.nan]]))
    >>> keys, rows = unpack_rows(packed.text)
    >>> keys, rows.attribute.tolist(), rows.keys.tolist(), rows.values[0].tolist()
    (['a', None], [5, 7], [0, 1], [1.0, nan])
    """
    data = json.dumps(keys).encode() + b"\n" + rows.to_bytes()
    return PackedRows(int(rows.attribute.min()), as_text(data, "zstd"))


def unpack_rows(text: str) -> KeyedRows:
    """Read the text that ``pack_rows`` wrote."""
    data = from_text(text, "zstd")
    start = data.index(b"\n") + 1
    return KeyedRows(json.loads(data[:start]), Rows.from_bytes(data, start))


def merge_packed(parts: Sequence[PackedRows], grouped: bool) -> PackedRows:
    """Pack several packed rows as one. Rows of the same time stay in the order of the parts."""
    codes: dict[Key, int] = {}
    rows = with_shared_codes((unpack_rows(part.text) for part in parts), codes)
    return pack_rows(list(codes), by_group(rows)[0] if grouped else in_order(rows))


def with_shared_codes(parts: Iterable[KeyedRows], codes: dict[Key, int]) -> Rows:
    """Concatenate rows, their keys coded by ``codes``; keys that are not in ``codes`` are added to it."""
    coded = []
    for keys, rows in parts:
        shared = np.array([codes.setdefault(key, len(codes)) for key in keys], dtype=np.int64)
        coded.append(Rows(rows.attribute, shared[rows.keys], rows.values))
    return Rows.concat(coded, len(coded[0].values) if coded else 0)


def _pack_by_shard(table: pa.Table, shards: list[int], grouped: bool, reduce: Reduce | None) -> pa.RecordBatch:
    """One packed value per shard that has rows."""
    at, key, *values = table.combine_chunks().columns
    keys, codes = _coded(key.combine_chunks())
    owner = _shards_of(keys, len(shards))
    # Keys are numbered in the order of their shards, so those of one shard are neighbours.
    by_shard = np.argsort(owner, kind="stable")
    rank = np.empty(len(keys), dtype=np.int64)
    rank[by_shard] = np.arange(len(keys))
    rows = Rows.of(at.to_numpy(), rank[codes], [value.to_numpy() for value in values])
    if reduce is not None:
        rows = reduce(rows)
    shard_of_key = owner[by_shard].astype(np.int64)
    if grouped:
        rows, _ = by_group(rows)
    else:
        rows = rows.take(by_group(Rows(rows.attribute, shard_of_key[rows.keys], ()))[1])
    row_ends = np.cumsum(np.bincount(shard_of_key[rows.keys], minlength=len(shards))).tolist()
    key_ends = np.cumsum(np.bincount(owner, minlength=len(shards))).tolist()
    packed = []
    for number, shard in enumerate(shards):
        row_start, key_start = (row_ends[number - 1], key_ends[number - 1]) if number else (0, 0)
        if row_ends[number] == row_start:
            continue
        part = rows.take(slice(row_start, row_ends[number]))
        own_keys = [keys[i] for i in by_shard[key_start : key_ends[number]].tolist()]
        first, text = pack_rows(own_keys, Rows(part.attribute, part.keys - key_start, part.values))
        packed.append((int(part.attribute.max()), shard, first, text))
    columns = zip(*packed, strict=True) if packed else [[] for _ in _ARROW_SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)


def _coded(key: pa.Array) -> tuple[list[Key], Ints]:
    """The distinct keys, and the position of each row's key among them."""
    if pa.types.is_integer(key.type) and not key.null_count:
        numbers = key.to_numpy()
        low = int(numbers.min())
        if int(numbers.max()) - low < _MAX_DENSE_SPAN:
            counts = np.bincount(numbers - low)
            used = np.flatnonzero(counts)
            code = np.empty(len(counts), dtype=np.int64)
            code[used] = np.arange(len(used))
            return list((used + low).tolist()), code[numbers - low]
    encoded = key.dictionary_encode(null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _shards_of(keys: list[Key], shards: int) -> NDArray[np.uint16]:
    """The shard of each key: the same in every micro-batch and on every machine."""
    if keys and isinstance(keys[0], int):
        numbers = np.array(keys, dtype=np.int64).view(np.uint64)
        with np.errstate(over="ignore"):
            hashed = ((numbers ^ (numbers >> np.uint64(32))) * _MIX) >> np.uint64(32)
    else:
        hashed = np.array([zlib.crc32(str(key).encode()) for key in keys], dtype=np.uint64)
    return np.asarray(hashed % np.uint64(shards), dtype=np.uint16)
