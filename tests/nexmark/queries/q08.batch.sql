SELECT P.window.start AS window_start, P.window.end AS window_end, P.id, P.name, COUNT(*) AS auctions
FROM (SELECT *, window(dateTime, '10 seconds') AS window FROM person) AS P
JOIN (SELECT *, window(dateTime, '10 seconds') AS window FROM auction) AS A ON P.id = A.seller AND P.window = A.window
GROUP BY P.window, P.id, P.name
