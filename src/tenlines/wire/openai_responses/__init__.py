"""OpenAI Responses: a conversation as a list of items. The items of the OpenAI Agents SDK are the same format."""
