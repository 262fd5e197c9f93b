-- guard: what must hold before a whole queue may be deleted. Needs meta, active.

-- guarded answers the refusal, or false: 'paused' asks for a paused queue in which nothing runs, 'force'
-- for a paused one, '' for nothing.
local function guarded(guard)
  if guard == '' then
    return false
  end
  if redis.call('HEXISTS', meta, 'paused') == 0 then
    return redis.error_reply('EMQSTATE the queue is not paused: pause it first')
  end
  local running = redis.call('ZCARD', active)
  if running > 0 and guard ~= 'force' then
    return redis.error_reply('EMQSTATE ' .. running .. ' of its jobs run: wait for their ends, or force it')
  end
  return false
end
