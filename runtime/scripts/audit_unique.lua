-- audit_unique: unique keys whose holders are gone.
--
-- KEYS  meta
-- ARGV  base, '1' to look only or '', unique keys (at most 500)
-- Does  frees a key whose holder's row is gone, names another key, or has ended as a dead letter or as
--       completed. A key that is held for a time outlives its job on purpose and stays.
-- Gives how many. Safe to repeat.
-- By    Queue.Audit
--@keys meta
local base = ARGV[1]
--@use row unique
--@main
local strays = {}
for i = 3, math.min(#ARGV, 502) do
  local id = redis.pcall('GET', base .. 'de:' .. ARGV[i])
  if type(id) == 'table' and id.err and string.sub(id.err, 1, 9) ~= 'WRONGTYPE' then
    return id
  end
  if type(id) == 'string' and redis.call('PTTL', base .. 'de:' .. ARGV[i]) < 0 then
    local r = read(base .. 'job:' .. id, 'unique', 'state')
    if r[1] ~= ARGV[i] or r[2] == 'dead' or r[2] == 'completed' then
      strays[#strays + 1] = ARGV[i]
    end
  end
end
if ARGV[2] ~= '1' then
  for _, unique in ipairs(strays) do
    free(unique)
  end
end
return #strays
