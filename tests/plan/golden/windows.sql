SELECT sensor, MAX(value) AS peak, AVG(value)
FROM   Sensors [RANGE 5 minutes SLIDE 1 minute WATTR ts DRATIO 1% SLACK 20000]
WHERE  value > 0
GROUP BY sensor HAVING COUNT(*) > 3
---
SELECT store, COUNT(*), SUM(serviceTime) FROM Services [RANGE 1000 SLIDE 1000 WATTR orderID LATE ROWS] GROUP BY 1
---
SELECT sensor, PERCENTILE(value, 0.5), FIRST(value) FROM Sensors [RANGE 10 minutes SLIDE 4 minutes, SOURCE host] GROUP BY sensor
---
SELECT s.sensor, n.place, STDDEV(value), APPROX_COUNT_DISTINCT(host)
FROM Sensors [RANGE 1 hour SLIDE 5 minutes DRATIO 0.1% ARRIVAL at LATE PANES] AS s JOIN names AS n ON n.sensor = s.sensor
GROUP BY s.sensor, n.place
---
SELECT sensor, AVG(value) FROM Sensors [RANGE 30 seconds DRATIO 1%] GROUP BY sensor
---
SELECT store, AVG(serviceTime) FROM Services [RANGE 100 tuples SLIDE 10 tuples PER store WATTR orderID] GROUP BY store
---
SELECT COUNT(*) FROM Sensors [RANGE 1 minute SLIDE 1 second DRATIO 1% SLACK 0]
---
SELECT COUNT(*) FROM Sensors [RANGE 1 minute SLIDE 1 minute HEARTBEAT beat]
---
SELECT sensor, value FROM Sensors [DRATIO 1%] WHERE value > 0
---
WITH peaks AS (SELECT sensor, MAX(value) AS peak FROM Sensors [RANGE 1 minute SLIDE 1 minute] GROUP BY sensor)
SELECT sensor, peak + 1 FROM peaks
---
SELECT sensor, PERCENTILE_APPROX(value, 0.5), COUNT(*) FILTER (WHERE value > 3) AS n, AVG(value) AS mean, MAX(value)
FROM Sensors [RANGE 1 minute SLIDE 1 second ARRIVAL at DRATIO 1% DELAY 2 seconds] GROUP BY sensor WITH ERROR
---
SELECT sensor, COUNT(*) AS n, SUM(value) FROM Sensors [RANGE 1 minute DELAY 2 seconds LATE ROWS] GROUP BY sensor
---
SELECT sensor, MAX(value), AVG(value) FROM Sensors [LANDMARK '2024-01-01' SLIDE 1 minute DRATIO 1%] GROUP BY sensor
---
SELECT store, LAST(serviceTime) FROM Services [LANDMARK 1000 SLIDE 100 WATTR orderID] GROUP BY store
---
SELECT COUNT(*) FROM Orders [RANGE 100 SLIDE 100 WATTR id ARRIVAL at]
---
SELECT AVG(serviceTime) FROM Services [RANGE 100 tuples WATTR orderID] WHERE store = 'north'
---
WITH n AS (SELECT * FROM names)
SELECT n.place, window_end AS t, FIRST(value) IGNORE NULLS, COUNT(value, host) AS n, LISTAGG(host, ', ') AS hosts
FROM Sensors [RANGE 10 minutes SLIDE 5 minutes WATTR TS] AS s JOIN n ON n.sensor = s.sensor
GROUP BY n.place HAVING COUNT(*) > (SELECT COUNT(*) FROM n)
---
SELECT sensor, MAX(value) FROM Sensors [RANGE 10 minutes SLIDE 1 second DRATIO 1%] GROUP BY sensor
---
SELECT sensor, COUNT(*) AS n, MAX(value)
FROM Sensors [RANGE 1 minute SLIDE 1 minute ARRIVAL at DELAY 2 seconds, SHED BY value] GROUP BY sensor WITH ERROR
---
SELECT SUM(value) FROM Sensors [RANGE 1 minute SLIDE 1 minute DELAY 2 seconds SHED BY (IF(host = ')]', value, array(-1)[0]))]
---
SELECT s.host, SUM(n.factor * value) FROM Sensors [RANGE 1 minute SLIDE 1 minute DRATIO 1% DELAY 2 seconds AFTER WHERE] AS s LEFT JOIN names AS n ON n.sensor = s.sensor WHERE s.sensor IN ('a', 'b') AND s.value > -1.5 AND LENGTH(s.host) = 3 AND n.place = 'north' AND s.ts > TIMESTAMP '2026-01-01' GROUP BY s.host
---
SELECT sensor, COUNT(*) AS n, MAX(value) FROM Sensors [SESSION 10 minutes DRATIO 1%] GROUP BY sensor HAVING COUNT(*) > 1
---
SELECT DISTINCT sensor, host FROM Sensors [RANGE 1 minute SLIDE 1 minute]
---
SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY peak DESC, sensor) AS n
  FROM (SELECT sensor, MAX(value) AS peak FROM Sensors [RANGE 1 minute SLIDE 1 minute] GROUP BY sensor)
) WHERE n <= 3
---
SELECT a.sensor, AVG(b.speed) FROM Sensors [RANGE 2 minutes SLIDE 1 minute DRATIO 1%] AS a
LEFT JOIN Traffic [RANGE 1 minute SLIDE 1 minute WATTR timestamp DRATIO 5%] AS b ON a.value = b.speed GROUP BY a.sensor
---
SELECT a.sensor, b.speed FROM Sensors [RANGE 5 minutes DRATIO 1%] AS a
JOIN Traffic [RANGE 1 minute WATTR timestamp DRATIO 5%] AS b ON a.value = b.speed
---
SELECT ts FROM Sensors [DRATIO 1%] UNION ALL SELECT timestamp FROM Traffic [DRATIO 5%]
---
WITH w AS (SELECT sensor, MAX(value) AS peak FROM Sensors [RANGE 1 minute SLIDE 1 minute] GROUP BY sensor)
SELECT a.sensor FROM w AS a JOIN w AS b ON a.window_end = b.window_end AND a.peak = b.peak AND a.sensor < b.sensor
