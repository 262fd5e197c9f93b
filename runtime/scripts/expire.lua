-- expire: what is kept for a while is deleted when its while is over.
--
-- KEYS  completed, dead, dead_at, ...
-- ARGV  base, limit (at most 500)
-- Does  deletes completed jobs whose retention has passed, then dead letters over the morgue's caps:
--       meta.dead_ms of age (90 days) and meta.dead_max jobs (10 000), the oldest deaths first. A row
--       that is in another state by now is not theirs and stays.
-- Gives {count, ms until the next retention ends, 0 if more dead letters have to go, or -1}. Safe to repeat.
-- By    the pump
--@keys completed dead dead_at meta
local base = ARGV[1]
--@use now row
local function expire(limit)
  local t = now()
  local function delete(ids, state, ...)
    if #ids == 0 then
      return 0
    end
    local rows, logs = {}, {}
    for _, id in ipairs(ids) do
      local row = base .. 'job:' .. id
      local r = read(row, 'state', 'logs')
      if r[1] == state then
        rows[#rows + 1] = row
        if logged(row, r[2]) then
          logs[#logs + 1] = row .. ':logs'
        end
      end
    end
    for _, set in ipairs({ ... }) do
      redis.call('ZREM', set, unpack(ids))
    end
    if #rows > 0 then
      redis.call('DEL', unpack(rows))
    end
    if #logs > 0 then
      redis.call('DEL', unpack(logs))
    end
    return #ids
  end
  local count = delete(redis.call('ZRANGE', completed, '-inf', t, 'BYSCORE', 'LIMIT', 0, limit), 'completed', completed)
  local head = redis.call('ZRANGE', completed, 0, 0, 'WITHSCORES')

  local m = redis.call('HMGET', meta, 'dead_max', 'dead_ms')
  local old = t - tonumber(m[2] or 90 * 24 * 3600 * 1000)
  local aged = delete(redis.call('ZRANGE', dead_at, '-inf', old, 'BYSCORE', 'LIMIT', 0, limit), 'dead', dead, dead_at)
  local surplus = redis.call('ZCARD', dead_at) - tonumber(m[1] or 10000)
  local over = math.min(surplus, limit)
  if over > 0 then
    count = count + delete(redis.call('ZRANGE', dead_at, 0, over - 1), 'dead', dead, dead_at)
  end
  count = count + aged
  if aged > 0 and aged == limit or over > 0 and over < surplus then
    return count, 0 -- the next beat comes at once, or jobs that die faster than beats come would pile up
  end
  return count, head[2] and math.max(head[2] - t, 0) or -1
end
--@main
return { expire(math.max(0, math.min(tonumber(ARGV[2]), 500))) }
