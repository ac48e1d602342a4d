"""The life of a deployment on a real account, within a limit of dollars, and a report on it."""
