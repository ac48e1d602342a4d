"""Shoal's word embeddings compared with gensim's word2vec, and the modes in which ranks learn together."""
