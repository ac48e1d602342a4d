"""Places where a training run executes: this machine, hosts, a deployment's nodes, and SageMaker.

One file per place.
"""
