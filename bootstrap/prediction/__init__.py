"""Labels texts with a trained model, and compares its predictions with the labels that files have."""
