-- In a cluster: publishes to the subscriber of a claim, in the slot of the counter; how many heard it.

local function tell(value, message)
  local tag = string.match(KEYS[1], '{.*}$')
  return call('SPUBLISH', 'lockattr:inbox:' .. string.sub(value, 1, 16) .. ':' .. tag, message)
end

