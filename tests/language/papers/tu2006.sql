-- The paper prints no query. This one states its promise, an average delay of two seconds.
SELECT COUNT(*) FROM Packets [RANGE 10 seconds SLIDE 1 second, DELAY 2 seconds] WITH ERROR
