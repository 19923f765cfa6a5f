SELECT window_start, window_start + INTERVAL 1 DAY AS window_end, auction, bidder, price, n
FROM (
  SELECT *, DATE_TRUNC('DAY', dateTime) AS window_start,
    ROW_NUMBER() OVER (PARTITION BY DATE_TRUNC('DAY', dateTime), auction ORDER BY price DESC, bidder) AS n
  FROM bid
)
WHERE n <= 10
