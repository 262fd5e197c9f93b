-- grace: after a silence nobody's lease is taken back at once. Needs meta.
--
-- Heartbeats and reapers note in meta.seen that somebody is alive. If none of them was seen for half a
-- lease, the server or everybody was away: whoever comes back first starts a time of grace, a third of
-- a lease, in which the others can come back too. Answers when the grace is over; 0 for no grace.
local function alive(t, lease)
  local m = redis.call('HMGET', meta, 'seen', 'grace')
  local grace = tonumber(m[2] or 0)
  if t - tonumber(m[1] or 0) > lease / 2 then
    grace = t + math.floor(lease / 3)
  end
  if grace > t + lease then
    grace = 0 -- the clock stepped back
  end
  redis.call('HDEL', meta, '-') -- accepted without memory, so that beats and recovery are too
  redis.call('HSET', meta, 'seen', t, 'grace', grace)
  return grace
end
