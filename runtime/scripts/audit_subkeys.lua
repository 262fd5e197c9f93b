-- audit_subkeys: what belonged to jobs whose rows are gone.
--
-- KEYS  meta
-- ARGV  base, '1' to look only or '', ids and the names of their keys ('logs'), in pairs (at most 250)
-- Does  deletes the keys of jobs that have no row.
-- Gives how many. Safe to repeat.
-- By    Queue.Audit
--@keys meta
local base = ARGV[1]
--@use
--@main
local strays = {}
for i = 3, math.min(#ARGV, 502), 2 do
  local row = base .. 'job:' .. ARGV[i]
  if redis.call('EXISTS', row) == 0 and redis.call('EXISTS', row .. ':' .. ARGV[i + 1]) == 1 then
    strays[#strays + 1] = row .. ':' .. ARGV[i + 1]
  end
end
if ARGV[2] ~= '1' and #strays > 0 then
  redis.call('UNLINK', unpack(strays))
end
return #strays
