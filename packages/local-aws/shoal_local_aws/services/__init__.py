"""Adds to S3, EFS and Lambda what ministack lacks."""
