"""Sources of a training: dataset, raw texts or text stream, each in a file."""
