local layout, worker, from, to, sent = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
if redis.call('HGET', settings, 'layout') ~= layout then return {0, worker, to} end
local text = redis.call('HGET', rows, worker)
if text == from then
  redis.call('HSET', rows, worker, to)
  return {1, worker, to}
end
-- Only a command that was sent before may say that what it finds is its own write.
-- Otherwise a copy of the process is at work, which has drawn the same nonce, and the two
-- would both go on.
if text == to and sent > 1 then return {1, worker, to} end
return {0, worker, to}
