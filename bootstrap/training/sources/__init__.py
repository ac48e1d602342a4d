"""What is learnt from: a kind of source is a file."""
