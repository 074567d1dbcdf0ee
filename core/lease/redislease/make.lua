local datacenter, layout, workers = ARGV[1], ARGV[2], tonumber(ARGV[3])
local stored, made, foreign = space(datacenter)
if foreign ~= '' then return {foreign} end
if made == 1 or stored ~= '' and stored ~= layout then return {''} end
for first = 0, workers - 1, 1000 do
  local fields = {}
  for worker = first, math.min(first + 1000, workers) - 1 do
    fields[#fields + 1] = worker
    fields[#fields + 1] = '0,,,0,0,0,'
  end
  redis.call('HSET', rows, unpack(fields))
end
redis.call('HSET', settings, 'layout', layout, 'rows:' .. datacenter, workers)
return {''}
