"""Emulates EC2 instances, auto scaling groups and Run Command."""
