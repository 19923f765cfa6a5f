SELECT B.auction, B.bidder, B.price, B.channel, B.dateTime, A.itemName, A.seller, A.category, A.expires
FROM bid [WATTR dateTime DRATIO 1%] AS B JOIN auction [WATTR dateTime DRATIO 1%] AS A ON B.auction = A.id
WHERE A.category = 10
