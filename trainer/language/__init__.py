"""Language models: an LSTM learns to predict the next word, or the next byte, of text without labels."""
