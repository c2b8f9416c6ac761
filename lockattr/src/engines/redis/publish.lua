-- On one server: publishes to the subscriber of a claim; how many heard it.

local function tell(value, message)
  return call('PUBLISH', 'lockattr:inbox:' .. string.sub(value, 1, 16), message)
end

