SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM bid AS B JOIN side AS S ON MOD(B.auction, 10) = S.key
