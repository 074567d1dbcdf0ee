local worker, epoch, owner, nonce = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local ids, confirmed, window = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local asked, skew, guard = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local maxAhead = tonumber(ARGV[11])
local _, again = sentBefore(ARGV[12])

local text = redis.call('HGET', rows, worker)
if not text then return {'gone'} end
local row = parse(text)
if not row then return {'damaged', worker, text} end

if row.epoch ~= epoch or row.owner ~= owner then return {'taken'} end
if not known(row.nonce, 13) then
  if again and row.nonce == nonce then return {'done', worker, text, now} end
  return {'copied'}
end
if guard > 0 and math.max(now, asked) > confirmed - guard then return {'lapsed'} end

local limit
if guard > 0 then
  limit = math.min(now, asked) + window
else
  local at = now
  if math.abs(now - asked) <= skew then
    at = math.max(now, asked)
  elseif math.abs(asked - (confirmed - window)) < math.abs(now - (confirmed - window)) then
    at = asked
  end
  limit = math.min(math.max(at, ids), at + maxAhead) + window
end
return write(worker, {
  epoch = epoch,
  owner = owner,
  nonce = nonce,
  limit = math.max(row.limit, confirmed, limit),
  renewals = row.renewals + 1,
  before = row.limit,
  holder = row.holder,
})
