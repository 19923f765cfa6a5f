SELECT window_start, window_start + INTERVAL 1 DAY AS window_end, bidder, auction, price, channel, dateTime
FROM (
  SELECT *, DATE_TRUNC('DAY', dateTime) AS window_start,
    ROW_NUMBER() OVER (PARTITION BY DATE_TRUNC('DAY', dateTime), bidder, auction ORDER BY dateTime DESC) AS n
  FROM bid
)
WHERE n <= 1
