-- obliterate: keys of a queue without jobs are deleted, a bounded part in each call.
--
-- KEYS  pending, active, schedule, dead, completed, ring, meta, and then the keys to delete (at most 500)
-- ARGV  guard ('paused' or 'force')
-- Does  deletes the keys, whatever they hold, if no list has a job: what is left of rows is then nobody's.
--       Their memory is freed behind the scenes.
-- Gives {1, how many}; {0} while a list has jobs; EMQSTATE for what the guard keeps out. Safe to repeat.
-- By    Queue.Obliterate
--@keys pending active schedule dead completed ring meta
--@use guard
--@main
local refused = guarded(ARGV[1])
if refused then
  return refused
end
if redis.call('EXISTS', pending, active, schedule, dead, completed, ring) > 0 then
  return { 0 }
end
return { 1, redis.call('UNLINK', unpack(KEYS, 8)) }
