"""What speaks to an account of AWS: sessions, S3, CloudFormation's stacks, the CDK, and whose a thing is."""
