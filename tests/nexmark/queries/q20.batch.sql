SELECT B.auction, B.bidder, B.price, B.channel, B.dateTime, A.itemName, A.seller, A.category, A.expires
FROM bid AS B JOIN auction AS A ON B.auction = A.id
WHERE A.category = 10
