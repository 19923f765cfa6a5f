"""The schema of the papers' streams, ten wrong queries, and the batch query for each query of the papers."""

from __future__ import annotations

from slackwater.plan import Catalog

CATALOG = Catalog.from_sql(
    """CREATE TABLE Traffic (timestamp TIMESTAMP, speed DOUBLE);
    CREATE TABLE Sensors (ts TIMESTAMP, sensor STRING, value DOUBLE);
    CREATE TABLE Services (orderID BIGINT, serviceTime DOUBLE);
    CREATE TABLE Packets (ts TIMESTAMP, size DOUBLE);
    CREATE TABLE Portfolio (ts TIMESTAMP, value DOUBLE);
    CREATE TABLE Floor2 (ts TIMESTAMP, average DOUBLE)"""
)
WRONG = (
    "SELECT MAX(value) FROM Sensors [RNGE 30 seconds]",
    "SELECT MAX(value) FROM Sensors [RANGE 30 parsecs]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 10 tuples]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes HEARTBEAT ts DRATIO 1%]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes DRATIO 100%]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes WATTR tss]",
    "SELECT MAX(value) FROM Sensors [RANGE 1 minute SLIDE 5 minutes]",
    "SELECT AVG(serviceTime) FROM Services [RANGE 100 WATTR orderID SLACK 5 seconds]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes LATE PANES]",
    "SELECT reflect('java.lang.System', 'exit', 1), COUNT(*) FROM Sensors [RANGE 5 minutes]",
)
SLIDING = """SELECT w.start AS window_start, w.end AS window_end, {aggregate}
    FROM (SELECT *, window({time}, '{length}', '{slide}') AS w FROM {{all}}) AS r
    LEFT ANTI JOIN {{missed}} AS m ON m.{id} = r.{id} AND m.window_end = r.w.end GROUP BY w"""
PER_ROW = """SELECT ts - INTERVAL {seconds} SECONDS AS window_start, ts AS window_end, MAX(value) OVER
    (ORDER BY unix_micros(ts) RANGE BETWEEN {us} PRECEDING AND CURRENT ROW)
    AS `max(value)` FROM {{kept}}"""
TUPLES = """SELECT MIN(orderID) OVER recent AS window_start, orderID AS window_end, AVG(serviceTime) OVER recent
    AS `avg(serviceTime)` FROM {kept} WINDOW recent AS (ORDER BY orderID ROWS BETWEEN 99 PRECEDING AND CURRENT ROW)"""
TRAFFIC = SLIDING.format(
    aggregate="MAX(speed) AS `max(speed)`", time="timestamp", id="timestamp", length="5 minutes", slide="1 minute"
)
PACKETS = SLIDING.format(
    aggregate="CAST(COUNT(*) AS DOUBLE) AS `count(*)`, 0D AS `count(*)_error`, 0D AS shed_ratio",
    time="ts",
    id="ts",
    length="10 seconds",
    slide="1 second",
)
BATCHES = {
    "kim2007": (TRAFFIC, TRAFFIC),
    "kim2010": (PER_ROW.format(seconds=30, us=29_999_999), TUPLES, TUPLES),
    "kim2012": (
        PER_ROW.format(seconds=30, us=29_999_999),
        PER_ROW.format(seconds=30, us=29_999_999),
        PER_ROW.format(seconds=300, us=299_999_999),
    ),
    "tu2006": (PACKETS,),
    "zhu2004": ("", ""),
}
