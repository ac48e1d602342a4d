"""Prediction: labels texts with a trained model, and compares predictions with ratings or labels."""
