-- row: reads fields of a job's row. A key of another type, which only somebody else can have put
-- there, is no row: it must not stop a script that has other jobs to see to.
local function read(row, ...)
  local r = redis.pcall('HMGET', row, ...)
  if not r.err then
    return r
  end
  if string.sub(r.err, 1, 9) == 'WRONGTYPE' then
    return {}
  end
  return redis.call('HMGET', row, ...) -- a slot that moves: the server says so in its own words
end
