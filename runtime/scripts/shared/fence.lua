-- fence: the test of a call that comes from a running job and settles nothing. Needs row.

-- outside answers false for the claim that holds the job, else the refusal; r begins with the row's
-- state, attempts and by.
local function outside(id, r, token, by)
  if not r[1] then
    return redis.error_reply('EMQGONE no job ' .. id)
  end
  if r[1] ~= 'active' or r[2] ~= token or r[3] ~= by then
    return redis.error_reply('EMQSTALE job ' .. id .. ' is not under this claim')
  end
  return false
end
