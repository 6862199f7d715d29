"""Tool schemas in the dialects of JSON Schema that providers take."""
