-- cron: when the pump must look at an entry. Needs repeats, wake_pump.
--
-- The score in repeat is the next tick, NEVER while the entry is paused; of a declared entry also the end
-- of its lease, if that comes first.
local NEVER = 9007199254740991
local LEASE = 3600000 -- ms for which a declared entry lives without a refresh

local function heed(name, due, paused, refreshed)
  local at = paused and NEVER or tonumber(due) or NEVER
  if refreshed then
    at = math.min(at, refreshed + LEASE)
  end
  redis.call('ZADD', repeats, string.format('%.0f', at), name)
end

-- heed_now is heed for an entry that is new to the pump, which is woken if it is the earliest.
local function heed_now(name, due, paused, refreshed)
  heed(name, due, paused, refreshed)
  if redis.call('ZRANK', repeats, name) == 0 and redis.call('EXISTS', wake_pump) == 0 then
    redis.call('LPUSH', wake_pump, 1)
  end
end

local function no_entry(name)
  return redis.error_reply('EMQGONE no cron entry ' .. name)
end
