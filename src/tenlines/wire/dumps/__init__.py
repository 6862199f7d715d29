"""What frameworks write to disk, as turns: one file per source, pure and total."""
