"""Access to an AWS account: sessions, S3, CloudFormation's stacks, the CDK, and the ownership of resources."""
