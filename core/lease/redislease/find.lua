-- Returns some rows that seem to be free. It decides nothing. It is here, and not in Go,
-- because there may be 65,536 rows.
local layout, made, foreign = space(ARGV[1])
local owner, held, released = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local workers, random = tonumber(ARGV[5]), tonumber(ARGV[6])
local probes = tonumber(ARGV[7]) -- so many random workers follow, then those that will do; none: all

-- INFO may be forbidden. A user who may run it learns the policy of this very server.
-- In a cluster a command of its own would ask another server.
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:(%S+)') or '?'

local free = {} -- {worker, text}
local own       -- the same of the row that has the claim's token: it was done before

-- look reads no more of a row than it must.
local function look(list)
  for i, text in ipairs(redis.call('HMGET', rows, unpack(list))) do
    if text then
      local holder, limit = string.match(text, '^%d+,([^,]*),[^,]*,(%-?%d+),')
      limit = tonumber(limit)
      if limit and holder == owner then own = {list[i], text}
      elseif limit and (holder == '' and limit <= now + released or holder ~= '' and limit + held <= now) then
        free[#free + 1] = {list[i], text}
      end
    end
  end
end

-- answer returns some of the free rows, or the one that the claim has taken before.
local function answer()
  local some, step = {own}, math.max(1, math.floor(#free / 4))
  for i = 0, math.min(4, #free) - 1 do
    if not own then some[#some + 1] = free[(random + i * step) % #free + 1] end
  end
  local found = {}
  for _, row in ipairs(some) do
    found[#found + 1] = tostring(row[1])
    found[#found + 1] = row[2]
  end
  return {now, layout, made, foreign, policy, found, rows}
end

if made == 0 then return answer() end

-- Most of the time some of a few random workers are free.
local list = {}
for i = 8, 7 + probes do list[#list + 1] = ARGV[i] end
if #list > 0 then look(list) end
if own or #free > 0 then return answer() end

local only = 7 + probes
local all = only == #ARGV
local candidates = all and workers or #ARGV - only
for first = 1, candidates, 1000 do
  list = {}
  for i = first, math.min(first + 999, candidates) do
    list[#list + 1] = all and string.format('%.0f', i - 1) or ARGV[only + i]
  end
  look(list)
end
return answer()
