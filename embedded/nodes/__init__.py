"""EC2's instances: what a machine is here, who starts and ends it, and what runs on it by Run Command."""
