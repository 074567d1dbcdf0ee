local layout, made, foreign = space(ARGV[1])
local found = {} -- worker, text, worker, text …
if ARGV[2] == 'all' then
  found = redis.call('HGETALL', rows)
else
  for first = 3, #ARGV, 1000 do
    local list = {}
    for i = first, math.min(first + 999, #ARGV) do list[#list + 1] = ARGV[i] end
    for i, text in ipairs(redis.call('HMGET', rows, unpack(list))) do
      if text then
        found[#found + 1] = list[i]
        found[#found + 1] = text
      end
    end
  end
end
return {now, layout, made, foreign, '', found, rows}
