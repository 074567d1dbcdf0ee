-- The beginning of every script. KEYS[1] has the settings of the namespace,
-- KEYS[2] the rows of the space, one field per worker:
--
--     epoch,owner,nonce,until,renewals,before,holder
--
-- "before" is the limit as the last write found it, for people. No script computes any of
-- it: package lease does, and swap.lua compares the text.
local settings, rows = KEYS[1], KEYS[2]

-- A write that changes nothing. A server that takes no writes fails here. Above all
-- that is a replica, whose rows may be old, and which must refuse nobody his row.
redis.call('HDEL', settings, '')

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- space returns what the settings say of a datacenter: the layout, whether its rows were
-- made, and the key that should not be there, or not without the other. The settings
-- remember that rows were made. Rows without the memory, the memory without any rows, or
-- either without the layout, are the rest of something else.
local function space(datacenter)
  local layout = redis.call('HGET', settings, 'layout')
  local made = redis.call('HEXISTS', settings, 'rows:' .. datacenter)
  local there = redis.call('EXISTS', rows)
  local foreign = ''
  if not layout and redis.call('EXISTS', settings) == 1 then foreign = settings
  elseif made == 0 and there == 1 then foreign = rows
  elseif made == 1 and there == 0 then foreign = settings end
  return layout or '', made, foreign
end
