SELECT seller, ROUND(AVG(price), 2) AS average
FROM winning [RANGE 11 tuples PER seller WATTR dateTime DRATIO 1%]
GROUP BY seller
