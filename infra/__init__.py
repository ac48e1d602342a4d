"""Infrastructure of a deployment: the model of a topology, its price, and its CDK stack."""
