"""EC2 instances, auto scaling groups, and the emulated machines on which instances run."""
