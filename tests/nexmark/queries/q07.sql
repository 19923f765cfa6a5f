SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
FROM bid [WATTR dateTime DRATIO 1%] AS B
JOIN (SELECT MAX(price) AS price FROM bid [RANGE 10 seconds SLIDE 10 seconds WATTR dateTime DRATIO 1%]) AS W
  ON B.price = W.price AND B.dateTime >= W.window_end - INTERVAL 10 SECONDS AND B.dateTime < W.window_end
