-- now: the server's clock in milliseconds. TIME is called once in a script, never the caller's clock.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
