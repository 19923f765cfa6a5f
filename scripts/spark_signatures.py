"""Asks Spark which types its functions and operators take, and writes ``slackwater/plan/spark_signatures.txt``.

``python scripts/spark_signatures.py`` takes some minutes. The types are classes of one letter, as in ``TYPES``.
A line is ``name count accepted… result``: for a call with that many arguments, the classes that each argument may have
(``*``: any), and the class of the result: one letter, ``?`` if it is not known, or pairs of the first argument's class
and the result's. An operator is listed with all its pairs: ``= first second-classes result``.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
from pathlib import Path

from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

TARGET = Path(__file__).resolve().parents[1] / "src/slackwater/plan/spark_signatures.txt"
TYPES = {
    "b": "CAST(true AS BOOLEAN)",
    "i": "CAST(1 AS INT)",
    "l": "CAST(1 AS BIGINT)",
    "c": "CAST(1.5 AS DECIMAL(10, 2))",
    "d": "CAST(1.5 AS DOUBLE)",
    "s": "CAST('x' AS STRING)",
    "t": "TIMESTAMP '2024-01-01 00:00:00'",
    "n": "TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "e": "DATE '2024-01-01'",
    "v": "INTERVAL '1' DAY",
    "x": "X'00'",
    "a": "ARRAY('x')",
    "m": "MAP('x', 'x')",
    "r": "NAMED_STRUCT('x', 'x')",
}
NAMES = {
    "boolean": "b", "tinyint": "i", "smallint": "i", "int": "i", "bigint": "l", "decimal": "c", "float": "d",
    "double": "d", "string": "s", "timestamp": "t", "timestamp_ntz": "n", "date": "e", "interval day": "v",
    "binary": "x", "array": "a", "map": "m", "struct": "r",
}  # fmt: skip
BASES = ("NULL", "'x'", "1", "0.5D", "'DAY'")
"""Values for the arguments that are not asked about, until Spark accepts the call."""
MOST = 4
OPERATORS = ("+", "-", "*", "/", "%", "=", "<", "AND", "LIKE", "||", "DIV", "&")
_SPECIAL = """
    case cast extract interval session_window window window_time assert_true raise_error reflect java_method
    try_reflect python_worker_logs exists in between and or not like ilike rlike regexp similar div struct
    named_struct measure grouping grouping_id position bigint binary boolean date decimal double float int
    smallint string timestamp tinyint time from_avro to_avro schema_of_avro from_protobuf to_protobuf stack
    when rank dense_rank percent_rank
"""
NOT_ASKED = frozenset(_SPECIAL.split())
"""Not calls with plain arguments, or calls that do something."""
_COMMON = """
    sum avg mean min max count count_if any_value first last median mode stddev stddev_pop stddev_samp std variance
    var_pop var_samp bool_and bool_or every some any max_by min_by collect_list collect_set array_agg
    approx_count_distinct percentile percentile_approx approx_percentile corr covar_pop covar_samp kurtosis skewness
    try_sum try_avg bit_and bit_or bit_xor listagg string_agg abs ceil ceiling floor round bround sqrt cbrt exp ln log
    log2 log10 power pow mod pmod sign signum sin cos tan greatest least negative positive hypot degrees radians upper
    lower ucase lcase length char_length character_length trim ltrim rtrim btrim substring substr left right concat
    concat_ws replace translate split split_part instr locate lpad rpad repeat reverse initcap startswith endswith
    contains regexp_replace regexp_extract regexp_like regexp_count ascii chr levenshtein year month day dayofmonth
    dayofweek dayofyear quarter hour minute second weekofyear weekday date_add date_sub datediff date_diff
    months_between add_months last_day next_day trunc date_trunc date_format to_date to_timestamp unix_timestamp
    unix_seconds unix_millis unix_micros from_unixtime timestamp_seconds timestamp_millis timestamp_micros date_part
    make_date dateadd size cardinality array_contains array_max array_min array_size array_position element_at slice
    sort_array array_distinct array_join flatten explode map_keys map_values map_contains_key get coalesce nvl ifnull
    nullif nvl2 nanvl isnull isnotnull isnan md5 sha1 sha2 crc32 hash xxhash64 hex unhex base64 to_json from_json
    get_json_object
"""
OF_ELEMENTS = {"array_max", "array_min", "map_keys", "map_values"}
"""Functions whose result has the type of the elements."""
COMMON = frozenset(_COMMON.split())
"""Functions whose types are asked for; of the others only the number of arguments."""


class Probe:
    """Asks Spark about calls, and keeps the answers."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.kept: dict[str, tuple[bool, str]] = {}

    def ask(self, expression: str) -> tuple[bool, str]:
        """Whether the types are right, and the class of the result, or the condition of the error."""
        if expression not in self.kept:
            self.kept[expression] = self._ask(expression)
        return self.kept[expression]

    def _ask(self, expression: str) -> tuple[bool, str]:
        try:
            kind = self.spark.sql(f"SELECT {expression}")._jdf.schema().head().dataType().sql().lower()
        except (AnalysisException, ParseException) as error:
            return False, error.getCondition() or "?"
        except Exception as error:
            return False, f"? {type(error).__name__}"
        found = next((letter for name, letter in NAMES.items() if kind.startswith(name)), "?")
        return True, found if not kind.startswith("interval") or "day" in kind else "?"


def refuses_type(answer: tuple[bool, str]) -> bool:
    """Whether Spark refused the call because of a type, and not because of a value."""
    right, condition = answer
    return not right and (
        condition.startswith("DATATYPE_MISMATCH.")
        and not any(word in condition for word in ("VALUE_OUT_OF_RANGE", "FOLDABLE", "NULL", "INVALID_ARG_VALUE"))
    )


def signature(probe: Probe, name: str, count: int) -> str | None:
    """The line of a call with ``count`` arguments; None if Spark has none, or refuses all that was tried."""
    call = lambda arguments: f"{name}({', '.join(arguments)})"  # noqa: E731
    bases = [("NULL",) * count, *itertools.islice(itertools.product(BASES, repeat=count), 60)]
    if count == 0:
        right, kind = probe.ask(call(()))
        return f"{name} 0 {kind}" if right else None
    first = probe.ask(call(bases[0]))
    if first[1].startswith("WRONG_NUM_ARGS") or first[1] == "UNRESOLVED_ROUTINE":
        return None
    if name not in COMMON:
        return f"{name} {count} {'* ' * count}?"
    found = (base for base in bases if probe.ask(call(base))[0])
    good = bases[:1] if first[0] else list(itertools.islice(found, 2))
    accepted, results = [], {}
    for place in range(count):
        classes = ""
        for letter, value in TYPES.items():
            calls = [(*base[:place], value, *base[place + 1 :]) for base in good]
            answers = [probe.ask(call(arguments)) for arguments in (*calls, (value,) * count)]
            right = [kind for fine, kind in answers if fine]
            if right or (not good and count > 1) or not all(map(refuses_type, answers)):
                classes += letter
            for kind in right:
                results.setdefault((place, letter), set()).add(kind)
        accepted.append("*" if len(classes) in (0, len(TYPES)) else classes)  # none: it wants what was not tried
    result = "?" if name in OF_ELEMENTS else _result(results)
    return f"{name} {count} {' '.join(accepted)} {result}"


def _result(results: dict[tuple[int, str], set[str]]) -> str:
    """One letter, pairs by the class of the first argument, or ``?``."""
    kinds = set().union(*results.values()) if results else set()
    if len(kinds) == 1:
        return kinds.pop()
    others = set().union(*(found for (place, _), found in results.items() if place > 0), set())
    firsts = {letter: found for (place, letter), found in results.items() if place == 0}
    if len(others) <= 1 and firsts and all(len(found) == 1 for found in firsts.values()):
        return "".join(sorted(letter + next(iter(found)) for letter, found in firsts.items()))
    return "?"


def pairs(probe: Probe, operator: str) -> list[str]:
    """The lines of an operator: per class of its left side, pairs of the right side's class and the result's."""
    lines = []
    for left, first in TYPES.items():
        found = []
        for right, second in TYPES.items():
            answer = probe.ask(f"({first}) {operator} ({second})")
            if answer[0]:
                found.append(right + answer[1])
            elif not refuses_type(answer):
                found.append(right + "?")
        lines.append(f"{operator} {left} {''.join(found) or '-'}")
    return lines


def commons(probe: Probe) -> list[str]:
    """Which classes can be branches of one CASE, and the class of the whole."""
    lines = []
    for left, first in TYPES.items():
        answers = {
            right: probe.ask(f"CASE WHEN rand() > 1 THEN {first} ELSE {second} END") for right, second in TYPES.items()
        }
        found = [right + answer[1] for right, answer in answers.items() if answer[0]]
        lines.append(f"case {left} {''.join(found)}")
    return lines


def main() -> None:
    """Ask about everything and write the file."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    names = [row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    names = sorted(name for name in names if name.replace("_", "").isalnum() and name not in NOT_ASKED)
    probe = Probe(spark)
    lines = [line for operator in OPERATORS for line in pairs(probe, operator)] + commons(probe)
    for name in names:
        found = [signature(probe, name, count) for count in range(MOST + 1)]
        lines += [line for line in found if line]
        print(name, len(probe.kept), flush=True)
    spark.stop()
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
