"""S3, EFS and Lambda, in the few things where the emulator under it does less than AWS."""
