-- audit_members: members of a list that have no such job.
--
-- KEYS  pending, active, schedule, dead, dead_at, completed, ...
-- ARGV  base, '1' to look only or '', list, lane, cursor ('0' at first), about how many members to look at
--       (at most 500). The lists are 'pending', 'active', 'schedule', 'dead', 'dead_at', 'completed', and
--       of the lane 'waiting' and 'running'
-- Does  drops the members of the page whose row is gone, is in another state or in another lane, and counts
--       them as orphans. (A job of a lane's active set that active has lost is audit_rows' matter.)
-- Gives {next cursor, looked at, dropped}. Safe to repeat.
-- By    Queue.Audit
--@keys pending active schedule dead dead_at completed meta wake wake_pump m_orphan ring paused glimit gweight
local base = ARGV[1]
--@use now row lane parked ready announce place
--@main
local look, list, lane = ARGV[2] == '1', ARGV[3], ARGV[4]
local limit = math.max(1, math.min(tonumber(ARGV[6]), 500))
local sets = {
  pending = { pending, 'pending' },
  active = { active, 'active' },
  schedule = { schedule, 'scheduled' },
  dead = { dead, 'dead' },
  dead_at = { dead_at, 'dead' },
  completed = { completed, 'completed' },
  waiting = { ledger().waiting(lane), 'pending' },
  running = { ledger().running(lane), 'active' },
}
local key, state = sets[list][1], sets[list][2]
local page = redis.pcall(list == 'running' and 'SSCAN' or 'ZSCAN', key, ARGV[5], 'COUNT', limit)
if page.err then
  if string.sub(page.err, 1, 9) == 'WRONGTYPE' then
    return { '0', 0, 0 }
  end
  return page
end

local looked, strays = 0, {}
for i = 1, #page[2], list == 'running' and 1 or 2 do
  local id = page[2][i]
  local r = read(base .. 'job:' .. id, 'state', 'group')
  local there = r[1] == state
  if list == 'pending' then
    there = there and not r[2]
  elseif list == 'waiting' or list == 'running' then
    there = there and r[2] == lane
  end
  if look and list == 'running' and r[2] == lane and type(redis.pcall('ZSCORE', active, id)) == 'string' then
    there = true -- it leaves the lane when active drops it, and is counted there
  end
  looked = looked + 1
  if not there then
    strays[#strays + 1] = { id, r[2] }
  end
end
if look or #strays == 0 then
  return { page[1], looked, #strays }
end
for _, s in ipairs(strays) do
  if list == 'active' then
    if s[2] then
      ledger().reach(s[2])
    end
    vacate(s[1], s[2])
  elseif list == 'waiting' then
    unready(s[1], lane)
  else
    redis.call(list == 'running' and 'SREM' or 'ZREM', key, s[1])
  end
end
if list == 'running' and ledger().rank(lane) then
  wake_workers()
end
redis.call('HINCRBY', m_orphan, 'count', #strays)
return { page[1], looked, #strays }
