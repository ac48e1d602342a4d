"""Access to an AWS account: sessions, S3, CloudFormation stacks, the CDK, and names of resources."""
