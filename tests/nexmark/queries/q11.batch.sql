SELECT session_window.start AS window_start, session_window.end AS window_end, bidder, COUNT(*) AS bids
FROM bid GROUP BY session_window(dateTime, '10 seconds'), bidder
