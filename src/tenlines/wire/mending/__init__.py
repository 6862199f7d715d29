"""How each kind of fault is cured, over turns: messages, exchanges, their layout and order."""
