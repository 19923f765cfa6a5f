SELECT category, AVG(final) AS average
FROM (
  SELECT A.id, A.category, A.dateTime AS opened, MAX(B.price) AS final
  FROM auction [RANGE 20 seconds WATTR dateTime DRATIO 1%] AS A
  JOIN bid [WATTR dateTime DRATIO 1%] AS B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
  GROUP BY A.id, A.category, A.dateTime
)
GROUP BY category, window(opened, '30 seconds')
