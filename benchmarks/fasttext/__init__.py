"""Shoal's fastText model (`--model fasttext`) compared with the C++ program, which is the library `fasttext` of
requirements-bench.txt."""
