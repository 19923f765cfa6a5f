SELECT MAX(value)
FROM Sensors [RANGE 30 seconds]
;
SELECT AVG(serviceTime)
      FROM Services [RANGE 100 tuples,
                    WATTR orderID]
;
SELECT AVG(serviceTime)
      FROM Services [RANGE 100 tuples,
                    WATTR orderID,
                    DRATIO 1%]
