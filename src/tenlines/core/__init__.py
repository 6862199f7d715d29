"""The pure part: events fold into state, state says what to do next. No IO, no clock, no randomness.

Read in this order: `transcript`, `events`, `effects`, `machine`, `deciding`.
"""
