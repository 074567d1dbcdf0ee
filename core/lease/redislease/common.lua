-- The beginning of every script. KEYS[1] has the settings of the namespace,
-- KEYS[2] the rows of the space, one field per worker:
--
--     epoch,owner,nonce,until,renewals,before,holder
--
-- "before" is the limit as the last write found it. With it a script that was sent again,
-- and finds its own write done, can answer as it did the first time.
local settings, rows = KEYS[1], KEYS[2]

-- Lua counts in doubles, which are exact up to 2^53. No number here is beyond 2^51, nor
-- does Go let one in. So any sum of four is exact.
local most = 2251799813685248

local function number(text)
  local n = text and tonumber(text)
  if n and n >= -most and n <= most then return n end
end

-- parse returns the row that a text says, or nil. The keyword "until" is taken:
-- the limit it is.
local function parse(text)
  local epoch, owner, nonce, limit, renewals, before, holder =
    string.match(text, '^(%d+),([^,]*),([^,]*),(%-?%d+),(%d+),(%-?%d+),([ -~]*)$')
  epoch, limit, renewals, before = number(epoch), number(limit), number(renewals), number(before)
  if epoch and limit and renewals and before then
    return {epoch = epoch, owner = owner, nonce = nonce, limit = limit, renewals = renewals, before = before, holder = holder}
  end
end

-- known reports whether a nonce is among the arguments from the given one on.
local function known(nonce, first)
  for i = first, #ARGV do
    if ARGV[i] == nonce then return true end
  end
  return false
end

-- sentBefore takes a stamp apart. It returns how long before this command was sent its
-- caller had read the clock, in milliseconds, and whether this very call has sent it before.
--
-- Only then may a script that finds its own write done say so. Otherwise a copy of the
-- process is at work, which has drawn the same nonce, and the two would both go on.
local function sentBefore(stamp)
  local waited, times = string.match(stamp, '^(%d+),(%d+)$')
  return tonumber(waited), tonumber(times) > 1
end

-- A write that changes nothing. A server that takes no writes fails here. Above all
-- that is a replica, whose rows may be old, and which must refuse nobody his row.
redis.call('HDEL', settings, '')

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- make makes the rows of the space, unless they were made. It returns a reply if it
-- must not. The settings remember that the rows were made. Rows without the memory, the
-- memory without any rows, or either without the layout, are the rest of something
-- else.
local function make(layout, workers, datacenter)
  local stored = redis.call('HGET', settings, 'layout')
  if stored and stored ~= layout then return {'layout', stored} end
  local made = 'rows:' .. datacenter
  if not stored and redis.call('EXISTS', settings) == 1 then return {'foreign', settings} end
  if redis.call('HEXISTS', settings, made) == 0 then
    if redis.call('EXISTS', rows) == 1 then return {'foreign', rows} end
    for first = 0, workers - 1, 1000 do
      local fields = {}
      for worker = first, math.min(first + 1000, workers) - 1 do
        fields[#fields + 1] = worker
        fields[#fields + 1] = '0,,,0,0,0,'
      end
      redis.call('HSET', rows, unpack(fields))
    end
    redis.call('HSET', settings, 'layout', layout, made, workers)
  elseif redis.call('EXISTS', rows) == 0 then
    return {'foreign', settings}
  end
end

-- write stores a row and returns the reply that says so. It stores nothing that could
-- not be read again. %d would pass through a C long, of 32 bits on some servers.
-- tostring would round to 14 digits.
local function write(worker, row)
  local text = string.format('%.0f,%s,%s,%.0f,%.0f,%.0f,%s',
    row.epoch, row.owner, row.nonce, row.limit, row.renewals, row.before, row.holder)
  if not parse(text) then return {'unwritable', worker, text} end
  redis.call('HSET', rows, worker, text)
  return {'done', worker, text, now}
end
