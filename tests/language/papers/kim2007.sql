SELECT MAX(speed)
FROM Traffic [RANGE 5 minutes
SLIDE 1 minute
WATTR timestamp
SLACK 10]
;
SELECT MAX(speed)
FROM Traffic [RANGE 5 minutes
SLIDE 1 minute
WATTR timestamp
DRATIO 5%
SLACK 20]
