"""Cohere's chat endpoint, version 2: a plan beside the calls, documents as results."""
