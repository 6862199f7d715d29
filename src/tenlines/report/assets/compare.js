// Two runs side by side: steps that did the same stand on one line.
