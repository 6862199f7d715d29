"""AWS Bedrock Converse: one shape of request for many families of models, each with checks of its own."""
