local layout, workers, datacenter, nonce, least = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])

local wrong = make(layout, workers, datacenter)
if wrong then return wrong end

local all = redis.call('HGETALL', rows)
for i = 1, #all, 2 do
  if not parse(all[i + 1]) then return {'damaged', tonumber(all[i]), all[i + 1]} end
end
for i = 1, #all, 2 do
  local row = parse(all[i + 1])
  -- Sent again after it was done: only this very request knows its nonce.
  if row.nonce ~= nonce then
    local reply = write(all[i], {
      epoch = row.epoch + 1,
      owner = '',
      nonce = nonce,
      limit = math.max(row.limit, least),
      renewals = row.renewals + 1,
      before = row.limit,
      holder = '',
    })
    if reply[1] ~= 'done' then return reply end
  end
end
return {'done'}
