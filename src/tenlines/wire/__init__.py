"""Wire formats: a transcript in, a request body out; a response in, a `Reply` out. Pure.

One folder a format (`anthropic`, `bedrock`, `cohere`, `gemini`, `mistral`, `ollama`, `openai_chat`,
`openai_responses`); each `format.py` shows of what it consists, and `format.py` here what each part is for.

A run: `encoder` and `folding` (what formats share in writing), `endings`, `usage` (in reading), `guard` (each request
is checked before it goes), `constrained` and `plain` (the ways for small local models and for functions).

A file: `documents` (bytes to values), `recognising` (whose they are), `turns` (a body unfolded), `checking` with
`finding`, `repairing` with `mending`, `reading` and `converting`, `dumps` (what frameworks write), `targets` (what a
person types).

Facts: `rules`, `profile`, `formats`, `schemas` with `dialects`; `errors` with `error_shapes` and `refusals` say what a
provider means when it refuses.
"""
