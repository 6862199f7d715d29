"""Mistral's chat completions: messages as OpenAI's, and rules of their own, by the version of the tokenizer."""
