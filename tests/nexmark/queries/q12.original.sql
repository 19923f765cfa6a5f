SELECT bidder, COUNT(*) AS bids
FROM bid [WATTR dateTime DRATIO 1%]
GROUP BY bidder, window(CURRENT_TIMESTAMP(), '10 seconds')
