"""Training jobs of SageMaker, as real processes."""
