"""Learns word embeddings and lists the nearest words: `python examples/word_embeddings.py TEXT... OUTPUT WORD`.

TEXT are files with one text per line. OUTPUT is a folder for the vectors. WORD is the word that is looked up.
"""

import sys
from pathlib import Path

import numpy as np

from shoal import embed


def main(texts: list[str], output: Path, word: str) -> None:
    summary = embed(texts, output, embedding=50, epochs=3, min_count=2)
    print(f"{summary['vocabulary']:,} words")

    _, *lines = (output / "model" / "vectors.txt").read_text("utf-8").splitlines()
    words = [line.partition(" ")[0] for line in lines]
    vectors = np.array([line.split()[1:] for line in lines], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = np.argsort(-(vectors @ vectors[words.index(word)]))
    print(f"near {word}:", *(words[number] for number in near[1:6]))


if __name__ == "__main__":
    *given, folder, asked = sys.argv[1:]
    main(given, Path(folder), asked)
