"""SageMaker training jobs, which run as real processes."""
