local layout, worker, from, to, sent, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
if redis.call('HGET', settings, 'layout') ~= layout then return {0, worker, to} end
local text = redis.call('HGET', rows, worker)
if text == from then
  redis.call('HSET', rows, worker, to)
  -- A claim goes on without its record if the user may not run these, or the key has another type.
  if record then
    redis.pcall('LPUSH', KEYS[3], record)
    redis.pcall('LTRIM', KEYS[3], 0, ARGV[7] - 1)
  end
  return {1, worker, to}
end
-- Only a command that was sent before may say that what it finds is its own write.
-- Otherwise a copy of the process is at work, which has drawn the same nonce, and the two
-- would both go on.
if text == to and sent > 1 then return {1, worker, to} end
return {0, worker, to}
