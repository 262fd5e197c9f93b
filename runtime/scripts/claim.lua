-- claim: up to n waiting jobs become this caller's, each under a new token and a lease.
--
-- KEYS  pending, active, ...
-- ARGV  base, lease in ms, n (1 to 500), by (drawn anew for each call: the second half of the fence)
-- Does  cuts n to the concurrency limit and the rate; takes the oldest ids, or while there are lanes,
--       from each in turn by its weight and limit; per job: attempts + 1, by, state active, lease
--       until now + lease, a unique-until-start key freed. Ids without a row that waits there are
--       dropped and counted as orphans; they spend nothing. Passes the wake token on if more could be taken.
-- Gives {now, wait, pump, shards, job, ...}: wait is the ms until it is worth claiming again (-1: when woken),
--       pump is 1 if nothing was taken and nobody pumps the queue; shards is how many the queue has, 0 if
--       meta does not say; a job is {id, attempts, kind,
--       payload, forgiven, lapses, max, v, due, headers, lane, tick}. Not safe to repeat: a lost reply costs the
--       lease, and reap forgives it.
-- By    the worker's fetch loop
--@keys pending active meta wake pump m_orphan ring paused glimit gweight
local base, lease, n, by = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
--@use now lane rotate parked unique rate
--@main
local SCAN = 500 -- members looked at in one call, orphans included

local m = redis.call('HMGET', meta, 'paused', 'concurrency', 'rate_max', 'rate_ms', 'rate_tat', 'shards')
local t = now()
local wait = -1
local function nothing()
  return { t, wait, redis.call('EXISTS', pump) == 0 and 1 or 0, tonumber(m[6] or 0) }
end

if m[1] then
  return nothing()
end
n = math.min(n, SCAN)
local headroom = n + 1
if m[2] then
  headroom = tonumber(m[2]) - redis.call('ZCARD', active)
end
local allowed, tat, spacing = n + 1
if m[3] and m[4] then
  local ms
  allowed, ms, tat, spacing = allowance(tonumber(m[3]), tonumber(m[4]), m[5], t)
  if allowed == 0 then
    wait = ms
    if tat < tonumber(m[5]) then
      -- the clock stepped back: remember it, or the rate would wait until it has caught up
      redis.call('HDEL', meta, '-')
      spend(tat, spacing, 0)
    end
  end
end
n = math.min(n, headroom, allowed)
if n <= 0 then
  return nothing()
end

-- a text: the server writes a number out anew for each use, which costs as much as a command
local ends = string.format('%.0f', t + lease)
local jobs, leases, scanned = {}, {}, 0

-- serve moves up to k jobs of a lane from its list into flight; it answers how many, how many members
-- it removed, and the error of a row that is out of reach.
local function serve(list, lane, k)
  -- Read everything first. While a slot moves a row can be out of reach: what was read until then is
  -- taken, and the rest waits for the next call.
  local found, freed, seen, broken = {}, {}, 0, false
  while #found < k and scanned + seen < SCAN and not broken do
    local ids = redis.pcall('ZRANGE', list, seen, math.min(seen + k - #found, SCAN - scanned) - 1)
    broken = ids.err and ids
    if broken or #ids == 0 then
      break
    end
    for _, id in ipairs(ids) do
      local row = base .. 'job:' .. id
      local r = redis.pcall('HMGET', row, 'state', 'attempts', 'kind', 'payload', 'forgiven', 'lapses', 'max',
        'v', 'due', 'headers', 'unique', 'unique_until', 'group', 'tick')
      if r.err and string.sub(r.err, 1, 9) ~= 'WRONGTYPE' then
        broken = r
        break
      end
      local unique = r[12] == 'start' and r[11]
      if unique then
        local holder = redis.pcall('GET', base .. 'de:' .. unique)
        if type(holder) == 'table' and holder.err then
          broken = holder
          break
        end
        freed[row] = { unique, holder == id }
      end
      seen = seen + 1
      if r[1] == 'pending' and (r[13] or '') == lane then
        found[#found + 1] = { id, (r[2] or 0) + 1, r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[13], r[14] }
      end
    end
  end
  if seen == 0 then
    return 0, 0, broken
  end

  redis.call('ZREMRANGEBYRANK', list, 0, seen - 1)
  scanned = scanned + seen
  for _, job in ipairs(found) do
    local row = base .. 'job:' .. job[1]
    redis.call('HSET', row, 'state', 'active', 'attempts', job[2] == 1 and '1' or job[2], 'by', by)
    local f = freed[row]
    if f then
      redis.call('HDEL', row, 'unique', 'unique_until')
      if f[2] then
        free(f[1])
      end
    end
    if lane ~= '' then
      redis.call('SADD', ledger().running(lane), job[1])
    end
    jobs[#jobs + 1] = job
    leases[#leases + 1] = ends
    leases[#leases + 1] = job[1]
  end
  return #found, seen, broken
end

local lanes = redis.call('ZCARD', ring) > 0
local broken
if lanes then
  broken = rotate(n, SCAN, serve)
else
  broken = select(3, serve(pending, '', n))
end
if scanned == 0 then
  return broken or nothing()
end
if scanned > #jobs then
  redis.call('HINCRBY', m_orphan, 'count', scanned - #jobs)
end
if #jobs == 0 then
  if scanned == SCAN then
    wait = 0 -- nothing but orphans so far: look on
  end
  return nothing()
end
for i = 1, #leases, 500 do
  redis.call('ZADD', active, unpack(leases, i, math.min(i + 499, #leases)))
end
if spacing then
  spend(tat, spacing, #jobs)
  if allowed == #jobs then
    wait = math.max(math.ceil(tat + #jobs * spacing - t), 1)
  end
end
if headroom > #jobs and allowed > #jobs and (lanes and ledger().servable() or redis.call('ZCARD', pending) > 0) then
  wake_workers()
end
return { t, wait, 0, tonumber(m[6] or 0), unpack(jobs) }
