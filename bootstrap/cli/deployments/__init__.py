"""Commands about deployments and their runs."""
