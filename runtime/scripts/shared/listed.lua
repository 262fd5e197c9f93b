-- listed: in which list of the queue a job stands. Needs lane, pending, active, schedule, dead, completed.

-- listed answers a job's state by its row and by the lists, and its score there or false: 'absent'
-- without a row; 'unknown' if the list that the row's state names does not have it, or another one does.
local function listed(id, state, lane)
  if not state then
    return 'absent', false
  end
  local lists = {
    pending = lane and ledger().waiting(lane) or pending,
    active = active,
    scheduled = schedule,
    dead = dead,
    completed = completed,
  }
  local own, stray = state == 'awaiting_children', false
  for name, list in pairs(lists) do
    local score = redis.call('ZSCORE', list, id)
    if name == state then
      own = score
    elseif score then
      stray = true
    end
  end
  if stray or not own then
    return 'unknown', own
  end
  return state, own
end
