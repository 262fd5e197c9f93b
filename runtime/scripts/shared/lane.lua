-- lane: where the jobs of a lane are listed, and the lane's place in the ring. Needs base, pending,
-- meta, ring, paused, glimit, gweight.
--
-- The ring holds every lane in which a job waits. Its score is a virtual time, or PARKED while the lane
-- is paused or at its limit; every script leaves it so. A lane is false for a job without one.
local PARKED = 9007199254740991

local function waiting_of(lane)
  return base .. 'g:' .. lane .. ':pending'
end

local function running_of(lane)
  return base .. 'g:' .. lane .. ':active'
end

-- reach reads a lane's keys, which are not declared, before the first write for a job: while a slot
-- moves, the server refuses here and not half way.
local function reach(lane)
  if lane then
    redis.call('EXISTS', waiting_of(lane), running_of(lane))
  end
end

-- later is the virtual time one turn after another. The text has a fixed form, as servers print floats
-- differently.
local function later(score, turn)
  return tonumber(string.format('%.9f', score + turn))
end

-- turn_of is 1/weight, the virtual time that one job costs its lane; '' is the lane of those without.
local function turn_of(lane)
  local weight = tonumber(redis.call('HGET', gweight, lane) or 1)
  return 1 / (weight and weight > 0 and weight or 1)
end

-- place_in_ring writes a lane's score.
local function place_in_ring(lane, score)
  redis.call('ZADD', ring, string.format('%.9f', score), lane)
end

-- rank gives a lane its true score again. One that enters, or may be served again, comes a turn after
-- the lane that was served last: at the lowest score present it would win every tie and starve the
-- rest. Answers whether it has just become servable.
local function rank(lane)
  if redis.call('ZCARD', waiting_of(lane)) == 0 then
    redis.call('ZREM', ring, lane)
    return false
  end
  local limit = tonumber(redis.call('HGET', glimit, lane) or PARKED)
  if redis.call('SISMEMBER', paused, lane) == 1 or redis.call('SCARD', running_of(lane)) >= (limit or PARKED) then
    place_in_ring(lane, PARKED)
    return false
  end
  local score = tonumber(redis.call('ZSCORE', ring, lane) or PARKED)
  if score < PARKED then
    return false
  end
  place_in_ring(lane, later(tonumber(redis.call('HGET', meta, 'vt') or 0), turn_of(lane)))
  return true
end

-- count keeps meta.laned, how many jobs wait in lanes. An empty ring means none, which also mends a
-- number that somebody has spoilt.
local function count(n)
  if redis.call('EXISTS', ring) == 0 then
    redis.call('HDEL', meta, 'laned')
  else
    redis.call('HINCRBY', meta, 'laned', n)
  end
end

-- servable tells whether a claim would find something.
local function servable()
  if redis.call('ZCARD', pending) > 0 then
    return true
  end
  local head = redis.call('ZRANGE', ring, 0, 0, 'WITHSCORES')
  return head[2] and tonumber(head[2]) < PARKED
end
