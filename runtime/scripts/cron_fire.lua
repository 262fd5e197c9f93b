-- cron_fire: a cron entry advances, and the job of its tick enters the queue.
--
-- KEYS  row, entry, repeats, ...
-- ARGV  id, payload, base, src, unique key or '', its window in ms or '', lane or '', name, the rev and the
--       next tick that the caller saw, the tick to fire or '', the tick after it, how many were missed,
--       then the row's other fields and their values in pairs
-- Does  if the entry is as the caller saw it and the tick is due: admits the job as enqueue does, unless
--       the entry forbids overlap and the job of its last tick has not ended, and advances the entry. So a
--       tick fires once, whoever tries. A tick whose job is not admitted is skipped and counted.
-- Gives {'fired'}; {'missed'}: it only advanced; {'overlap'}, {'conflict'}, {'full'}: it advanced, but no
--       job entered; {'moved'}; {'early'}; {'duplicate'}: the id is taken, nothing changed. EMQKIND. Safe
--       to repeat: the second is 'moved'.
-- By    the pump
--@keys row entry repeats wake_pump pending schedule meta wake ring paused glimit gweight unique_key
local base, name, tick = ARGV[3], ARGV[8], ARGV[11]
--@use now row lane parked ready unique admit cron
--@main
-- lives tells whether the job of an earlier tick still waits or runs
local function lives(id)
  local state = read(base .. 'job:' .. id, 'state')[1]
  return state and state ~= 'dead' and state ~= 'completed'
end

local e = redis.call('HMGET', entry, 'rev', 'next', 'paused', 'refreshed', 'overlap', 'last_id')
local refreshed = tonumber(e[4] or nil)
local t = now()
local moved = e[1] ~= ARGV[9] or e[2] ~= ARGV[10] or e[3] or (refreshed and refreshed + LEASE <= t)
if moved or (tonumber(tick) or 0) > t or tonumber(e[2]) > t then
  redis.call('HDEL', meta, '-') -- accepted without memory
  if e[1] then
    heed(name, e[2], e[3], refreshed) -- a score that somebody has spoilt would be due for ever
  end
  return { moved and 'moved' or 'early' }
end
local outcome = 'missed'
if tick ~= '' then
  outcome = 'fired'
  if e[5] == 'skip' and e[6] and lives(e[6]) then
    outcome = 'overlap'
  else
    local lane = ARGV[7] ~= '' and ARGV[7]
    local refused = admit('pending', ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], lane, { unpack(ARGV, 14) })
    if not refused then
      ready(ARGV[1], lane)
      wake_workers()
    elseif refused.err and string.find(refused.err, 'EMQFULL', 1, true) then
      outcome = 'full'
    elseif refused[1] == 'conflict' then
      outcome = 'conflict'
    else
      return refused
    end
  end
end
redis.call('HDEL', meta, '-') -- accepted without memory, where no job has entered
redis.call('HSET', entry, 'next', ARGV[12])
if outcome == 'fired' then
  redis.call('HSET', entry, 'last', tick, 'last_id', ARGV[1])
  redis.call('HINCRBY', entry, 'fired', 1)
elseif outcome ~= 'missed' then
  redis.call('HINCRBY', entry, 'skipped', 1)
end
if ARGV[13] ~= '0' then
  redis.call('HINCRBY', entry, 'missed_ticks', ARGV[13])
end
heed(name, ARGV[12], false, refreshed)
return { outcome }
