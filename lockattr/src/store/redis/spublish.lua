-- In a cluster: to the channel of an inbox in the slot of the counter; how many heard it.

local function publish(inbox, message)
  local tag = string.match(KEYS[1], '{.*}$')
  return redis.call('SPUBLISH', 'lockattr:inbox:' .. inbox .. ':' .. tag, message)
end

