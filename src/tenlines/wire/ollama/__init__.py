"""Ollama's own chat endpoint (`/api/chat`): arguments are objects, and calls have no ids."""
