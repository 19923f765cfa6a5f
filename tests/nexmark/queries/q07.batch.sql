SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
FROM bid AS B
JOIN (SELECT window.start, window.end, MAX(price) AS price FROM bid GROUP BY window(dateTime, '10 seconds')) AS W
  ON B.price = W.price AND B.dateTime >= W.start AND B.dateTime < W.end
WHERE B.dateTime < '2024-03-02'
