WITH counts AS (
  SELECT window_start, window_end, auction, COUNT(*) AS num FROM bid [RANGE 10 seconds SLIDE 2 seconds WATTR dateTime DRATIO 1%] GROUP BY auction
), most AS (
  SELECT window_start, window_end, MAX(num) AS num FROM counts GROUP BY window_start, window_end
)
SELECT counts.window_end, counts.auction, counts.num
FROM counts JOIN most
  ON counts.window_start = most.window_start AND counts.window_end = most.window_end AND counts.num >= most.num
