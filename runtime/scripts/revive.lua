-- revive: many dead letters get a new life, the oldest deaths first, a bounded part in each call.
--
-- KEYS  dead, pending, dead_at, ...
-- ARGV  base, until (the last death that counts, in ms; '' is now), after and its time (the last dead
--       letter that was left where it is, '' and '' at first), kind or '', limit (looked at, at most 500),
--       n (at most so many new lives)
-- Does  reprocesses those of the kind; leaves the others, and those whose unique key has another holder.
--       Ids without a dead row are dropped and counted as orphans.
-- Gives {until, revived, refused, other kinds, dropped, after, its time, 1 if there may be more}. Safe to
--       repeat.
-- By    Queue.ReprocessAll
--@keys dead pending dead_at meta wake ring paused glimit gweight m_orphan
local base = ARGV[1]
--@use now reprocess
--@main
local till = ARGV[2] ~= '' and tonumber(ARGV[2]) or now()
local after, time, kind = ARGV[3], ARGV[4], ARGV[5]
local limit, n = math.max(1, math.min(tonumber(ARGV[6]), 500)), tonumber(ARGV[7])

local from = 0
if after ~= '' then
  local rank = redis.call('ZRANK', dead_at, after)
  if rank then
    from = rank + 1
  else
    -- it is gone meanwhile: go on where its time was
    local next = redis.call('ZRANGE', dead_at, time, '+inf', 'BYSCORE', 'LIMIT', 0, 1)
    from = next[1] and redis.call('ZRANK', dead_at, next[1]) or redis.call('ZCARD', dead_at)
  end
end
local found = redis.call('ZRANGE', dead_at, from, from + limit - 1, 'WITHSCORES')
local count, more = { revived = 0, held = 0, other = 0, dropped = 0 }, #found == 2 * limit
for i = 1, #found, 2 do
  local id, row = found[i], base .. 'job:' .. found[i]
  if tonumber(found[i + 1]) > till then
    more = false
    break
  end
  if count.revived >= n then
    more = true
    break
  end
  local r = read(row, 'state', 'kind')
  local status = 'other'
  if r[1] == 'dead' and (kind == '' or r[2] == kind) then
    status = reprocess(id, row)
  elseif r[1] ~= 'dead' then
    redis.call('ZREM', dead, id)
    redis.call('ZREM', dead_at, id)
    status = 'dropped'
  end
  count[status] = count[status] + 1
  if status == 'held' or status == 'other' then
    after, time = id, found[i + 1]
  end
end
if count.dropped > 0 then
  redis.call('HINCRBY', m_orphan, 'count', count.dropped)
end
return { till, count.revived, count.held, count.other, count.dropped, after, time, more and 1 or 0 }
