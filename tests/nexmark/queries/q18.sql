SELECT bidder, auction, MAX_BY(price, dateTime) AS price, MAX_BY(channel, dateTime) AS channel, MAX(dateTime) AS dateTime
FROM bid [RANGE 1 day SLIDE 1 day WATTR dateTime DRATIO 1%]
GROUP BY bidder, auction
