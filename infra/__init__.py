"""Defines what is provisioned: the model of a topology, its price, and the CDK stack that it becomes."""
