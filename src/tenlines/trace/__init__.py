"""What people see of a run: views of its log, for eyes and for tools that read traces."""
