SELECT P.id, P.name, COUNT(*) AS auctions
FROM person [RANGE 10 seconds SLIDE 10 seconds WATTR dateTime DRATIO 1%] AS P
JOIN auction [RANGE 10 seconds SLIDE 10 seconds WATTR dateTime DRATIO 1%] AS A ON P.id = A.seller
GROUP BY P.id, P.name
