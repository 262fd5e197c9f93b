-- rotate: whose turn it is, while there are lanes. Needs lane, pending, meta, ring, paused, glimit, gweight.
--
-- The lowest score is served and put back one turn later. Jobs without a lane take part under meta.fvt,
-- which is at least meta.vt, the score that was served last; they are no member of the ring, as that
-- would double the cost of a claim without lanes, and they win ties.

-- rotate takes up to n jobs and looks at up to scan members, by serve(list, lane, k), which answers how
-- many it took, how many members it removed, and an error that ends the call.
local function rotate(n, scan, serve)
  local b = ledger()
  local m = redis.call('HMGET', meta, 'vt', 'fvt')
  local vt, fvt = tonumber(m[1] or 0), tonumber(m[2] or 0)
  local flats, flat_turn = redis.call('ZCARD', pending), b.turn('')
  local limits, weights = redis.call('EXISTS', glimit) == 1, redis.call('EXISTS', gweight) == 1
  local pauses = redis.call('EXISTS', paused) == 1
  local left, served, failed = 0, false, false

  -- turns counts how many turns in a row, at most n, come before a bound, the first one in any case.
  local function turns(score, turn, bound, ties, n)
    local k = 1
    while k < n do
      score = b.later(score, turn)
      if score > bound or (score == bound and not ties) then
        break
      end
      k = k + 1
    end
    return k
  end

  -- pay moves on by what was taken, and answers the score after it
  local function pay(score, turn, taken)
    for _ = 1, taken do
      vt, served = score, true
      score = b.later(score, turn)
    end
    return score
  end

  while n > 0 and scan > 0 and not failed do
    local head = redis.call('ZRANGE', ring, 0, 1, 'WITHSCORES')
    local lane, score = head[1], tonumber(head[2] or PARKED)
    local flat = flats > 0 and math.max(fvt, vt) or PARKED
    local taken, seen = 0, 0
    if flat == PARKED and score == PARKED then
      break
    elseif flat <= score then
      taken, seen, failed = serve(pending, '', turns(flat, flat_turn, score, true, n))
      fvt = pay(flat, flat_turn, taken)
      flats = flats - seen
    else
      local list, running, room = b.waiting(lane), redis.pcall('SCARD', b.running(lane)), PARKED
      failed = type(running) == 'table' and running
      if limits and not failed then
        room = (tonumber(redis.call('HGET', glimit, lane) or PARKED) or PARKED) - running
      end
      if not failed and (room <= 0 or pauses and redis.call('SISMEMBER', paused, lane) == 1) then
        redis.call('HDEL', meta, '-') -- accepted without memory
        b.put(lane, PARKED)
      elseif not failed then
        local turn = weights and b.turn(lane) or 1
        local bound = math.min(tonumber(head[4] or PARKED), flat) -- the next lane's turn
        taken, seen, failed = serve(list, lane, turns(score, turn, bound, false, math.min(n, room)))
        score = pay(score, turn, taken)
        left = left + seen
        if redis.pcall('ZCARD', list) == 0 then
          redis.call('ZREM', ring, lane)
        elseif seen > 0 then
          b.put(lane, taken == room and PARKED or score)
        end
      end
      if failed and string.sub(failed.err, 1, 9) == 'WRONGTYPE' then
        redis.call('ZREM', ring, lane) -- somebody's key is no lane, and stops no other
        failed = false
      end
    end
    n, scan = n - taken, scan - math.max(seen, 1) -- a lane that was not parked counts too
  end

  if served then
    redis.call('HSET', meta, 'vt', string.format('%.9f', vt), 'fvt', string.format('%.9f', fvt))
  end
  if left > 0 then
    b.count(-left)
  end
  return failed
end
