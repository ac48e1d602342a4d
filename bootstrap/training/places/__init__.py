"""Places of a training: this machine, hosts, nodes of a deployment or SageMaker, each in a file."""
