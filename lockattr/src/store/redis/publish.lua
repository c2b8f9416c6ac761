-- On one server: to the channel of an inbox; how many heard it.

local function publish(inbox, message)
  return redis.call('PUBLISH', 'lockattr:inbox:' .. inbox, message)
end

