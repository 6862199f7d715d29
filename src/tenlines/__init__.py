"""tenlines."""
