return {KEYS[3], redis.call('LRANGE', KEYS[3], 0, -1)}
