"""A text as the bytes of its UTF-8: rule 1c of docs/dataset.md, one text at a time. A model of bytes needs no
vocabulary.

A byte's name is a word of a dataset's vocabulary, in the form that SentencePiece gives bytes: `<0x41>` is an A.
"""

NAMES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The name of each byte."""
NUMBERS = {name: byte for byte, name in enumerate(NAMES)}


def byte_words(text: str) -> list[str]:
    """The names of a text's bytes."""
    return [NAMES[byte] for byte in bytes_of(text)]


def bytes_of(text: str) -> bytes:
    """A text in UTF-8; a lone surrogate has the bytes that a letter of its number would have."""
    return text.encode("utf-8", "surrogatepass")


def is_byte_name(word: str) -> bool:
    """Whether it is the name of a byte."""
    return word in NUMBERS
