SELECT auction, price
FROM bid [WATTR dateTime DRATIO 1%]
WHERE MOD(auction, 7) = 0
