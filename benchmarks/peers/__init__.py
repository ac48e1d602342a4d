"""The same work by other means: each module is a program, `python -m benchmarks.peers.NAME INPUT... OUTPUT`.

All keep docs/dataset.md's contract exactly, so that outcomes can be compared; what a peer leaves in OUTPUT, and in
what form, is its own choice (`outcome`).
"""
