"""Tools for models that have none of their own: calls and results as text, read and written by one fixed form."""
