"""Sources of training data: dataset, raw texts and text stream. One file per source."""
