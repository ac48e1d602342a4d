"""Access to an AWS account: sessions, retries, S3, CloudFormation stacks, the CDK, IAM policies, and checks of
names."""
