local worker, epoch, owner, nonce, last = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local _, again = sentBefore(ARGV[6])

local text = redis.call('HGET', rows, worker)
if not text then return {'gone'} end
local row = parse(text)
if not row then return {'damaged', worker, text} end

if row.epoch ~= epoch or row.owner ~= owner then
  if again and row.epoch == epoch + 1 and row.nonce == nonce then return {'done', worker, text, now} end
  return {'taken'}
end
if not known(row.nonce, 7) then return {'copied'} end

return write(worker, {
  epoch = epoch + 1,
  owner = '',
  nonce = nonce,
  limit = last,
  renewals = row.renewals + 1,
  before = row.limit,
  holder = '',
})
