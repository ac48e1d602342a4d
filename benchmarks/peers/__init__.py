"""The same work by other means: each module is a program, `python -m benchmarks.peers.NAME INPUT... OUTPUT`.

All keep the contract of docs/reference/dataset.md, so that results are comparable; what a peer leaves in OUTPUT, and in
what form, is its own choice (`outcome`).
"""
