-- The paper prints no query text; its promise, an average delay of two seconds, is said like this.
SELECT COUNT(*) FROM Packets [RANGE 10 seconds SLIDE 1 second, DELAY 2 seconds] WITH ERROR
