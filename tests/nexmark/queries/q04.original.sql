SELECT category, AVG(final) AS average
FROM (
  SELECT MAX(B.price) AS final, A.category
  FROM auction [WATTR dateTime DRATIO 1%] AS A
  JOIN bid [WATTR dateTime DRATIO 1%] AS B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
  GROUP BY A.id, A.category
)
GROUP BY category
