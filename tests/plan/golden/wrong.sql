SELECT MAX(value) FROM Sensors [RNGE 30 seconds]
---
SELECT MAX(value) FROM Sensors [RANGE 30 parsecs]
---
SELECT MAX(value)
FROM   Sensors [RANGE 5 minutes SLIDE 10 tuples]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes HEARTBEAT beat DRATIO 1%]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes DRATIO 100%]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes WATTR tss]
---
SELECT MAX(value) FROM Sensors [RANGE 100 WATTR ts]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes WATTR sensor]
---
SELECT MAX(value) FROM Services [RANGE 5 minutes]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes LANDMARK '2024-01-01']
---
SELECT MAX(value) FROM Sensors [RANGE 1 minute SLIDE 5 minutes]
---
SELECT MAX(value) FROM Sensors [SLIDE 5 minutes]
---
SELECT MAX(value) FROM Sensors [RANGE 0 minutes]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes DRATIO 0.01]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes LATE PANES]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute LATE PANES] HAVING COUNT(*) > 1
---
SELECT MODE(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute LATE PANES]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes PER sensor]
---
SELECT sensor FROM Sensors [RANGE 5 minutes SLIDE 1 minute]
---
SELECT MAX(value FROM Sensors [RANGE 5 minutes]
---
SELECT sensor, MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute] GROUP BY sensor ORDER BY sensor
---
SELECT MAX(a.value) FROM Sensors [RANGE 5 minutes] a JOIN Traffic [RANGE 5 minutes] b ON a.value = b.speed
---
SELECT MAX(value) FROM Sensors
---
SELECT AVG(serviceTime) FROM Services [RANGE 100 WATTR orderID SLACK 5 seconds]
---
SELECT MAX(value) FROM Sensors [RANGE 5 minutes] WITHIN 0.5
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes HEARTBEAT host]
---
SELECT value FROM Sensors [LATE ROWS]
---
WITH w AS (SELECT COUNT(*) AS n FROM Sensors [RANGE 5 minutes SLIDE 1 minute LATE ROWS]) SELECT n FROM w
---
WITH w AS (SELECT COUNT(*) AS n FROM Sensors [RANGE 5 minutes SLIDE 1 minute LATE PANES]) SELECT n FROM w
---
SELECT COUNT(*) AS late FROM Sensors [RANGE 5 minutes SLIDE 1 minute LATE PANES]
---
WITH good AS (SELECT * FROM Sensors WHERE value > 0), w AS (SELECT COUNT(*) AS n FROM good [RANGE 5 minutes SLIDE 1 minute]) SELECT n FROM w
---
SELECT COUNT(*) FROM Services [LANDMARK 1.5 WATTR orderID]
---
SELECT COUNT(*) FROM Services [RANGE 100 SLIDE 100 WATTR orderID ARRIVAL store]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 0 seconds]
---
SELECT 'WITH ERROR', value FROM Sensors [DRATIO 1%] WITH ERROR
---
SELECT sensor, COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute]
---
SELECT COUNT(*) FROM Local [RANGE 5 minutes WATTR ts]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute SHED BY value]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED value]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY urgency]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY (SUM(value))]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY (value +)]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY (value, host)]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY (reflect('java.lang.System', 'exit', 1))]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY (value FROM Sensors)]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY (value]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second SHED BY 7]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute] WITH ERROR
---
SELECT COUNT(*) FROM Sensors [RANGE 10 tuples DELAY 1 second] WITH ERROR
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes DRATIO 1% SLACK 0]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute AFTER WHERE] WHERE value > 1
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second AFTER]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second AFTER value] WHERE value > 1
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second AFTER WHERE]
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second AFTER WHERE] WHERE LENGTH(host) = 3 AND RAND() > 0.5 AND ts > 'a'
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second AFTER WHERE] AS s RIGHT JOIN names AS n ON n.sensor = s.sensor WHERE s.value IS NULL
---
SELECT COUNT(*) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DELAY 1 second HEARTBEAT beat AFTER WHERE] WHERE value > 1
---
SELECT COUNT(*) FROM Sensors [SESSION 5 minutes]
---
SELECT sensor, COUNT(*) FROM Sensors [SESSION 5 minutes SLIDE 1 minute] GROUP BY sensor
---
SELECT sensor, COUNT(*) FROM Sensors [SESSION 5 minutes LATE PANES] GROUP BY sensor
---
SELECT sensor, COUNT(*) FROM Sensors [SESSION 5 minutes LATE ROWS] GROUP BY sensor
---
SELECT sensor, COUNT(*) FROM Sensors [DRATIO 1%] GROUP BY sensor
---
SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM Sensors [RANGE 5 minutes SLIDE 1 minute] GROUP BY sensor)
---
SELECT * FROM (SELECT COUNT(*) AS n FROM Sensors [RANGE 5 minutes SLIDE 1 minute] GROUP BY sensor) ORDER BY n LIMIT 3
---
SELECT *, ROW_NUMBER() OVER (PARTITION BY host ORDER BY ts) AS n FROM Sensors [DRATIO 1%]
---
SELECT *, RANK() OVER (PARTITION BY window_end ORDER BY n) AS r
FROM (SELECT COUNT(*) AS n FROM Sensors [RANGE 5 minutes SLIDE 1 minute] GROUP BY sensor)
---
SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end) AS r
FROM (SELECT COUNT(*) AS n FROM Sensors [RANGE 5 minutes SLIDE 1 minute] GROUP BY sensor)
---
SELECT a.sensor FROM Sensors [RANGE 5 minutes SLIDE 1 minute] a JOIN Traffic [RANGE 5 minutes] b ON a.value = b.speed
---
SELECT a.sensor FROM Sensors [RANGE 5 minutes SLIDE 1 minute] a
JOIN Traffic [RANGE 5 minutes SLIDE 2 minutes] b ON a.value = b.speed
---
SELECT a.* FROM Sensors [RANGE 1 minute SLIDE 1 minute] a JOIN Traffic [RANGE 1 minute SLIDE 1 minute] b ON a.value = b.speed
---
SELECT a.sensor FROM Sensors [RANGE 5 minutes LATE ROWS] a JOIN Traffic [RANGE 5 minutes] b ON a.value = b.speed
---
SELECT a.sensor FROM Sensors [RANGE 5 tuples] a JOIN Traffic [RANGE 5 minutes] b ON a.value = b.speed
---
SELECT a.sensor FROM Sensors [RANGE 5 minutes DELAY 2 seconds] a JOIN Traffic [RANGE 5 minutes] b ON a.value = b.speed
---
SELECT MAX(value) FROM Sensors [RANGE '5 minutes']
---
SELECT MAX(value) FROM Sensors [RANGE INTERVAL 5 MINUTES]
---
SELECT sensor, SUMM(value) FROM Sensors [RANGE 5 minutes] GROUP BY sensor
---
SELECT a.sensor FROM Sensors [DRATIO 1%] a JOIN Traffic [DRATIO 1%] b ON a.value > b.speed
---
SELECT a.sensor FROM Sensors [DRATIO 1%] a LEFT JOIN Traffic [DRATIO 1%] b ON a.value = b.speed
---
SELECT window_end, MAX(n) FROM (SELECT COUNT(*) AS n FROM Sensors [RANGE 5 minutes] GROUP BY sensor) GROUP BY window_end
