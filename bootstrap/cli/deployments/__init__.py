"""The commands about deployments: their life, their runs, and AWS's catalog."""
