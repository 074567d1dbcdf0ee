-- Shares no beginning with the others: it reads, and replicas may answer it.
local clock = redis.call('TIME')
return {clock[1] * 1000 + math.floor(clock[2] / 1000), redis.call('HGETALL', KEYS[2])}
