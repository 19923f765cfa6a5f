WITH counts AS (
  SELECT window.end AS window_end, auction, COUNT(*) AS num
  FROM bid GROUP BY window(dateTime, '10 seconds', '2 seconds'), auction
), most AS (
  SELECT window_end, MAX(num) AS num FROM counts GROUP BY window_end
)
SELECT counts.window_end, counts.auction, counts.num
FROM counts JOIN most ON counts.window_end = most.window_end AND counts.num >= most.num
