"""What a checker remembers and looks for: calls and their results, situations, where reasoning came from."""
