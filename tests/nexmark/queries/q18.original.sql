SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS n
  FROM bid [WATTR dateTime DRATIO 1%]
)
WHERE n <= 1
