local layout, workers, datacenter, owner, nonce = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local window, asked, skew, guard = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local maxAhead = tonumber(ARGV[10])
local waited, again = sentBefore(ARGV[11])
local random = tonumber(ARGV[12])
local name = ARGV[13] -- of the holder, for people
local probes = tonumber(ARGV[14]) -- so many random workers follow
local all = ARGV[15 + probes] == 'all' -- otherwise the workers that will do follow
local only = 15 + probes

local stored = redis.call('HGET', settings, 'layout')
if stored and stored ~= layout then return {'layout', stored} end
if math.abs(now - asked - waited) > skew then return {'skew', now, waited} end

-- INFO may be forbidden. A user who may run it learns the policy of this very server.
-- In a cluster a command of its own would ask another server.
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:(%S+)') or ''
if policy ~= '' and policy ~= 'noeviction' and not string.match(policy, '^volatile%-') then
  return {'evicts', policy}
end

local wrong = make(layout, workers, datacenter)
if wrong then return wrong end

local function isFree(holder, limit)
  if holder ~= '' then return limit + guard <= now end
  local ahead = skew
  if guard > 0 then ahead = ahead + window + guard end
  return limit <= now + ahead
end

-- What was seen of the rows: the workers and texts of the free ones, and what the error
-- needs if there is none. A damaged row is nobody's to claim, and any other will do.
local free, total, earliest, ahead, damaged = {}, 0, nil, {}, nil

-- look reads the rows of some workers. It returns a reply if there is no more to look
-- for, because the claim was done before. It reads no more of a row than it must: there may
-- be 65,536.
local function look(list)
  for i, text in ipairs(redis.call('HMGET', rows, unpack(list))) do
    if text then
      local worker = tonumber(list[i])
      local holder, limit = string.match(text, '^%d+,([^,]*),[^,]*,(%-?%d+),')
      limit = number(limit)
      if limit and holder == owner then
        local row = parse(text)
        if not row then return {'damaged', worker, text} end
        if again and row.nonce == nonce then return {'done', worker, text, now, policy} end
        return {'held', worker} -- by who has the first reply: this process, or a copy of it
      end
      local claimable = limit and isFree(holder, limit)
      if not limit or claimable and not parse(text) then
        damaged = {'damaged', worker, text}
      else
        if claimable then free[#free + 1] = {worker, text} end
        total = total + 1
        local at = limit + guard
        if at > now + window + maxAhead + guard then ahead[#ahead + 1] = worker end
        if not earliest or at < earliest then earliest = at end
      end
    end
  end
end

local function take(worker, text)
  local row = parse(text)
  local from = math.max(row.limit, now)
  if guard > 0 then from = math.min(now, asked) end
  local reply = write(worker, {
    epoch = row.epoch + 1,
    owner = owner,
    nonce = nonce,
    limit = math.max(row.limit, from + window),
    renewals = row.renewals + 1,
    before = row.limit,
    holder = name,
  })
  if reply[1] == 'done' then reply[5] = policy end
  return reply
end

-- Most of the time some of a few random workers are free. The first of them is as
-- random among the free ones as one chosen after looking at all.
if probes > 0 then
  local list = {}
  for i = 15, 14 + probes do list[#list + 1] = ARGV[i] end
  local reply = look(list)
  if reply then return reply end
  if #free > 0 then return take(unpack(free[1])) end
end

free, total, earliest, ahead = {}, 0, nil, {}
local candidates = all and workers or #ARGV - only
for first = 1, candidates, 1000 do
  local list = {}
  for i = first, math.min(first + 999, candidates) do
    list[#list + 1] = all and i - 1 or ARGV[only + i]
  end
  local reply = look(list)
  if reply then return reply end
end
if #free > 0 then return take(unpack(free[random % #free + 1])) end
return damaged or {'none', total, earliest or 0, now, ahead}
