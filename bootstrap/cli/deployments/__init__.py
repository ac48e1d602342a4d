"""Commands about deployments, their runs, and the catalogue of AWS instance types."""
