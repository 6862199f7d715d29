"""Wire formats: a transcript in, a request body out; a response in, a `Reply` out. Pure."""
