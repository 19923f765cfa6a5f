SELECT A.id, A.itemName, A.seller,
  MAX_BY(B.bidder, STRUCT(B.price, -UNIX_MILLIS(B.dateTime))) AS bidder, MAX(B.price) AS price
FROM auction [RANGE 20 seconds WATTR dateTime DRATIO 1%] AS A
JOIN bid [WATTR dateTime DRATIO 1%] AS B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
GROUP BY A.id, A.itemName, A.seller, A.dateTime
