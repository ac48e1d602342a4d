"""Places where a run trains: this machine, hosts of the user, nodes of a deployment, and SageMaker."""
