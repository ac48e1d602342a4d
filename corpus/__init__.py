"""What a review, a word and a row are: pure functions and the file format, light to import.

The contract is written out in docs/dataset.md. Preprocessing and training both build on this package
and on nothing else of each other. The fast core (`tokenise`, `stretches`, `compiled`) needs numba, which a
machine that trains does not have: nothing else here imports it at its top.
"""
