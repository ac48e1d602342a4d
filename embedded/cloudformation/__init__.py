"""CloudFormation: the resource types that the emulator under it lacks, and how stacks are made and deleted."""
