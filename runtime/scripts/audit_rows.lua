-- audit_rows: rows that no set holds although their state says so.
--
-- KEYS  pending, active, schedule, dead, dead_at, completed, ...
-- ARGV  base, '1' to look only or '', lease in ms, ids (at most 500)
-- Does  lists pending jobs again, in their lanes, and dead letters by the time of their deaths. A scheduled
--       job whose time is lost is due now, a completed one is kept for a day. A job that runs gets a lease:
--       its holder renews it if it lives, and else reap takes the job back; it gets its lane's slot again,
--       too. Everything is read and written here, so a job on its way from one state to another is not met.
-- Gives {pending, scheduled, active, dead, completed, lane slots, rows that are none}, how many each.
--       Safe to repeat.
-- By    Queue.Audit
--@keys pending active schedule dead dead_at completed meta wake wake_pump ring paused glimit gweight
local base = ARGV[1]
--@use now row lane parked ready place
--@main
local DAY = 24 * 3600 * 1000
local look, lease, t = ARGV[2] == '1', tonumber(ARGV[3]), now()
local count = { 0, 0, 0, 0, 0, 0, 0 }

-- absent tells whether a set does not have the member; a key of another type has none, and cannot get one
local function absent(command, key, id)
  local found = redis.pcall(command, key, id)
  if type(found) == 'table' and found.err then
    return string.sub(found.err, 1, 9) ~= 'WRONGTYPE' and redis.call(command, key, id)
  end
  return not found or found == 0
end

local function strays(id)
  local r = read(base .. 'job:' .. id, 'state', 'group', 'settled_at')
  local state, lane, at = r[1], r[2], tonumber(r[3] or t) or t
  if state == 'pending' then
    return 1, absent('ZSCORE', lane and ledger().waiting(lane) or pending, id), function()
      ready(id, lane)
      wake_workers()
    end
  elseif state == 'scheduled' then
    return 2, absent('ZSCORE', schedule, id), function()
      park(id, t)
    end
  elseif state == 'active' then
    local lost = absent('ZSCORE', active, id)
    local slotless = lane and absent('SISMEMBER', ledger().running(lane), id)
    return lost and 3 or 6, lost or slotless, function()
      if lost then
        redis.call('ZADD', active, t + lease, id)
      end
      if slotless then
        redis.call('SADD', ledger().running(lane), id)
        ledger().rank(lane)
      end
    end
  elseif state == 'dead' then
    return 4, absent('ZSCORE', dead, id) or absent('ZSCORE', dead_at, id), function()
      redis.call('ZADD', dead, 0, id)
      redis.call('ZADD', dead_at, at, id)
    end
  elseif state == 'completed' then
    return 5, absent('ZSCORE', completed, id), function()
      redis.call('ZADD', completed, t + DAY, id)
    end
  end
  return 7, redis.call('EXISTS', base .. 'job:' .. id) == 1, function() end
end

for i = 4, math.min(#ARGV, 503) do
  local what, astray, mend = strays(ARGV[i])
  if astray then
    count[what] = count[what] + 1
    if not look then
      redis.call('HDEL', meta, '-') -- accepted without memory
      mend()
    end
  end
end
return count
