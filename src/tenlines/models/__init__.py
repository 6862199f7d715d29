"""Ways to reach a model, one file each. Nothing is imported until it is used."""
