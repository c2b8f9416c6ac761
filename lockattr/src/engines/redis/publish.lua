-- On one server: publishes to a claim's subscriber. Returns how many connections received it.

local function notify(value, message)
  return call('PUBLISH', 'lockattr:inbox:' .. string.sub(value, 1, 16), message)
end

