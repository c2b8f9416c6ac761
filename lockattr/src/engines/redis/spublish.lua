-- In a cluster: publishes to a claim's subscriber, in the counter's slot. Returns how many
-- connections received it.

local function notify(value, message)
  local tag = string.match(KEYS[1], '{.*}$')
  return call('SPUBLISH', 'lockattr:inbox:' .. string.sub(value, 1, 16) .. ':' .. tag, message)
end

