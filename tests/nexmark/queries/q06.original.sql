SELECT seller, AVG(final) OVER (PARTITION BY seller ORDER BY dateTime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT A.id, A.seller, B.price AS final, B.dateTime,
    ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC) AS n
  FROM auction [WATTR dateTime DRATIO 1%] AS A
  JOIN bid [WATTR dateTime DRATIO 1%] AS B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
)
WHERE n <= 1
