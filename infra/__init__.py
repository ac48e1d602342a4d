"""Infrastructure of a deployment: the model of a topology, the price of the topology, and the CDK stack."""
