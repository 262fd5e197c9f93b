-- lane: where the jobs of a lane are listed, and the lane's place in the ring. Needs base, pending,
-- meta, ring, paused, glimit, gweight.
--
-- The ring holds every lane in which a job waits. Its score is a virtual time, or PARKED while the lane
-- is paused or at its limit; every script leaves it so. A lane is false for a job without one.
local PARKED = 9007199254740991
local book

-- ledger gives the functions. They are made when a lane is met: making them costs a script without
-- lanes a quarter of its time.
local function ledger()
  if book then
    return book
  end
  local b = {}
  book = b

  function b.waiting(lane)
    return base .. 'g:' .. lane .. ':pending'
  end

  function b.running(lane)
    return base .. 'g:' .. lane .. ':active'
  end

  -- reach reads a lane's keys, which are not declared, before the first write for a job: while a slot
  -- moves, the server refuses here and not half way.
  function b.reach(lane)
    redis.call('EXISTS', b.waiting(lane), b.running(lane))
  end

  -- later is the virtual time one turn after another. The text has a fixed form, as servers print
  -- floats differently.
  function b.later(score, turn)
    return tonumber(string.format('%.9f', score + turn))
  end

  -- turn is 1/weight, the virtual time that one job costs its lane; '' is the lane of those without.
  function b.turn(lane)
    local weight = tonumber(redis.call('HGET', gweight, lane) or 1)
    return 1 / (weight and weight > 0 and weight or 1)
  end

  function b.put(lane, score)
    redis.call('ZADD', ring, string.format('%.9f', score), lane)
  end

  -- rank gives a lane its true score again. One that enters, or may be served again, comes a turn after
  -- the lane that was served last: at the lowest score present it would win every tie and starve the
  -- rest. Answers whether it has just become servable.
  function b.rank(lane)
    if redis.call('ZCARD', b.waiting(lane)) == 0 then
      redis.call('ZREM', ring, lane)
      return false
    end
    local limit = tonumber(redis.call('HGET', glimit, lane) or PARKED)
    if redis.call('SISMEMBER', paused, lane) == 1 or redis.call('SCARD', b.running(lane)) >= (limit or PARKED) then
      b.put(lane, PARKED)
      return false
    end
    local score = tonumber(redis.call('ZSCORE', ring, lane) or PARKED)
    if score < PARKED then
      return false
    end
    b.put(lane, b.later(tonumber(redis.call('HGET', meta, 'vt') or 0), b.turn(lane)))
    return true
  end

  -- count keeps meta.laned, how many jobs wait in lanes. An empty ring means none, which also mends a
  -- number that somebody has spoilt.
  function b.count(n)
    if redis.call('EXISTS', ring) == 0 then
      redis.call('HDEL', meta, 'laned')
    else
      redis.call('HINCRBY', meta, 'laned', n)
    end
  end

  -- servable tells whether a claim would find something.
  function b.servable()
    if redis.call('ZCARD', pending) > 0 then
      return true
    end
    local head = redis.call('ZRANGE', ring, 0, 0, 'WITHSCORES')
    return head[2] and tonumber(head[2]) < PARKED
  end

  return b
end
