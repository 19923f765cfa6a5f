SELECT P.name, P.city, P.state, A.id
FROM auction [WATTR dateTime DRATIO 1%] AS A JOIN person [WATTR dateTime DRATIO 1%] AS P ON A.seller = P.id
WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')
