"""The check of the project's English finds what it lists, and nothing in plain sentences."""

import pytest

from tools.prose import check

PLAIN = '"""Return the split of a global batch over ranks."""\n# Ranks of one group need the same torch.\n'


@pytest.mark.parametrize(
    ("source", "line", "kind", "phrase"),
    [
        ('def f() -> None:\n    """Of each rank, its rows."""\n', 2, "docstring", "Of"),
        ('class A:\n    x: int\n    """Rows, whose ids are known."""\n', 3, "docstring", "whose"),
        ("x = 1  # read anew\n", 1, "comment", "anew"),
        ("def what_a_node_has_told() -> None: ...\n", 1, "name", "told"),
        ("isTold = 1\n", 1, "name", "told"),
        ('raise ValueError(f"{x} cannot be read")\n', 1, "string", "cannot be"),
        ('"""Words.\n\nThe run goes on.\n"""\n', 3, "docstring", "goes on"),
    ],
)
def test_a_phrase_to_avoid_is_found_with_its_line_and_kind(source, line, kind, phrase) -> None:
    ((found_line, found_kind, found_phrase, _),) = check.findings("a.py", source)
    assert (found_line, found_kind, found_phrase) == (line, kind, phrase)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", PLAIN),
        ("a.md", "Shoal counts malformed lines.\n\n```sh\necho told\n```\n\nThe file `told.txt` is one of them.\n"),
        ("a.yaml", "epochs: 3  # passes over the training rows\n"),
    ],
)
def test_plain_sentences_and_code_in_documents_pass(path, source) -> None:
    assert list(check.findings(path, source)) == []


@pytest.mark.parametrize(("words", "count"), [(check.LONGEST, 0), (check.LONGEST + 1, 1)])
def test_a_sentence_of_a_document_or_docstring_has_a_longest_length(words, count) -> None:
    sentence = " ".join(["word"] * words) + "."
    assert len(list(check.findings("a.md", f"Before.\n\n{sentence}\n"))) == count
    assert len(list(check.findings("a.py", f'"""{sentence}"""\n'))) == count


def test_sentences_end_at_marks_and_list_items_and_leave_tables_out() -> None:
    document = "# A heading\n\nOne `a.b` here. Two:\n\n- three\n- [four](x.md)\n\n| a | b |\n"
    assert list(check.sentences(document)) == ["One code here.", "Two:", "three", "four"]
