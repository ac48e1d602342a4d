"""EC2 instances and auto scaling groups, and the machines that run them."""
