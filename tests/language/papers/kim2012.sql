SELECT MAX(value)
    FROM Sensors [RANGE 30 seconds]
;
SELECT MAX(value)
    FROM Sensors [RANGE 30 seconds, DRATIO 1%]
;
SELECT MAX(value)
      FROM Sensors [RANGE 5 minutes, DRATIO 1%]
