SELECT bidder, COUNT(*) AS bids
FROM bid [SESSION 10 seconds WATTR dateTime DRATIO 1%]
GROUP BY bidder
