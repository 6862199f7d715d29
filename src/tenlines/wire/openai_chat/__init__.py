"""OpenAI Chat Completions, as OpenAI and the many servers that call themselves compatible speak it."""
