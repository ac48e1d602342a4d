"""SageMaker training jobs, which run as real processes."""


class JobError(Exception):
    """The training job failed. The message is the job's `FailureReason`."""
