SELECT auction, bidder, price, dateTime, extra
FROM bid [WATTR dateTime DRATIO 1%]
