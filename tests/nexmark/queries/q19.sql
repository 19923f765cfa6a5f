SELECT window_start, window_end, auction, bidder, price, n
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, auction ORDER BY price DESC, bidder) AS n
  FROM (SELECT auction, bidder, price, dateTime FROM bid [RANGE 1 day SLIDE 1 day WATTR dateTime DRATIO 1%] GROUP BY auction, bidder, price, dateTime)
)
WHERE n <= 10
