"""Programs that do the same work with other tools: `python -m benchmarks.peers.NAME INPUT... OUTPUT`.

All implement the contract of docs/reference/dataset.md exactly, so that `outcome` can compare their results. Each
chooses the format of its files in OUTPUT.
"""
