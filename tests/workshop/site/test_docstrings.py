"""Docstrings as the house writes them become reStructuredText that says the same."""

import pytest
from docutils.core import publish_doctree

from companion.workshop.site.docstrings import convert


@pytest.mark.parametrize(
    ("docstring", "text"),
    [
        ("Nothing | in *prose* is markup_ but ``code``s.", "Nothing | in *prose* is markup_ but codes."),
        ("A reference to `Other`'s part.", "A reference to Other's part."),
        ("Over two\nlines.", "Over two lines."),
        ("A formula:\n\n    a_b = |c|\n\nand more.", "A formula:\n\na_b = |c|\n\nand more."),
        ("Adds.\n\n``a``, ``b``: what\n  is added.\n``c``: not.", "Adds.\n\na, b: what is added.\n\nc: not."),
        (">>> 1 + 1\n2", ">>> 1 + 1\n2"),
    ],
)
def test_it_reads_as_it_was_written(docstring, text):
    tree = publish_doctree(
        "\n".join(convert(docstring.split("\n"))), settings_overrides={"report_level": 2, "halt_level": 2}
    )
    assert tree.astext() == text
