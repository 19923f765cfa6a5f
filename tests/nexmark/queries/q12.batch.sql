SELECT window.start AS window_start, window.end AS window_end, bidder, COUNT(*) AS bids
FROM bid GROUP BY window(arrived, '10 seconds'), bidder
