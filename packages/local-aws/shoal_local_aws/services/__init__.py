"""Behaviour of S3, EFS, Lambda and CloudWatch alarms that ministack lacks."""
