"""Emulates the training jobs of SageMaker, each as real processes."""
