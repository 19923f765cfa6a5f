SELECT id, itemName, seller, bidder, price
FROM (
  SELECT A.*, B.bidder, B.price, ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime) AS n
  FROM auction [WATTR dateTime DRATIO 1%] AS A
  JOIN bid [WATTR dateTime DRATIO 1%] AS B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
)
WHERE n <= 1
