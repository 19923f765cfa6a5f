-- The paper gives its queries in words; each comment quotes one.
-- "Return the maximum value of my stock portfolio in the last hour"
SELECT MAX(value) FROM Portfolio [RANGE 1 hour] WITHIN 0.5 CONFIDENCE 95%
;
-- "Give me today's minimum average temperature on the 2nd floor"
SELECT MIN(average) FROM Floor2 [LANDMARK '2004-06-18 00:00:00'] WITHIN 2% CONFIDENCE 90%
