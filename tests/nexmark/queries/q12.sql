SELECT bidder, COUNT(*) AS bids
FROM bid [RANGE 10 seconds SLIDE 10 seconds WATTR arrived DRATIO 1%]
GROUP BY bidder
