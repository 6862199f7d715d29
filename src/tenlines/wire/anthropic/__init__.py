"""Anthropic Messages, as Anthropic, Bedrock, Vertex, DeepSeek and llama.cpp's server speak it."""
