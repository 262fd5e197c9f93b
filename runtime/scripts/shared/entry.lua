-- entry: what is told of a cron entry. Needs base, row.

-- told reads an entry; the payload, which may be large, only if it is asked for.
local function told(name, payload)
  local r = read(base .. 'repeat:' .. name, 'rev', 'next', 'last', 'last_id', 'refreshed', 'paused', 'fired',
    'skipped', 'missed_ticks', 'spec', 'tz', 'missed', 'overlap', 'kind', 'v', 'headers', 'group', 'unique', 'window',
    'until', payload and 'payload' or '-')
  for i = 1, 21 do
    r[i] = r[i] or ''
  end
  return { name, unpack(r, 1, 21) }
end
