"""The claims table: what it shows, what it carries, what it refuses; and the published tables."""

import numpy as np
import pytest

from companion.claims import MIME, Claims, published_table


@pytest.fixture
def claims():
    table = Claims()
    table.add("first", "a < b", source="Somebody 2024", published="1.0", checkpoint="1.1", holds=True)
    table.add("second", "c", source="Somebody 2024", published="2.0", run="3.0", holds=np.bool_(False))
    return table


def test_the_table_carries_its_rows_as_json(claims):
    rows = claims._repr_mimebundle_()[MIME]
    assert rows[0] == {
        "id": "first", "statement": "a < b", "source": "Somebody 2024", "published": "1.0", "checkpoint": "1.1", "run": "-", "holds": True,
    }  # fmt: skip
    assert rows[1]["holds"] is False


def test_html_is_escaped_and_text_has_every_cell(claims):
    bundle = claims._repr_mimebundle_()
    assert "a &lt; b" in bundle["text/html"] and "a < b" not in bundle["text/html"]
    assert "c (Somebody 2024) | 2.0 | - | 3.0 | no" in bundle["text/plain"]


def test_verdicts_are_a_line_each(claims, capsys):
    claims.verdicts()
    assert capsys.readouterr().out == "first: holds\nsecond: does not hold\n"


def test_an_id_cannot_be_taken_twice(claims):
    with pytest.raises(ValueError, match="id = 'first'"):
        claims.add("first", "again", source="s", published="p", run="1", holds=True)


def test_a_claim_needs_a_measured_figure(claims):
    with pytest.raises(ValueError, match="claim 'third': needs a measured figure"):
        claims.add("third", "typed in", source="s", published="p", holds=True)


@pytest.mark.parametrize(
    "name, shape, cell, value",
    [
        ("similarity_of_errors_iterative_newton_ill_conditioned", (23, 12), (12, 5), 0.977),
        ("similarity_of_errors_gradient_descent_ill_conditioned", (31, 12), (0, 0), 0.990),
        ("similarity_of_errors_gradient_descent_isotropic", (11, 12), (7, 6), 0.971),
    ],
)
def test_published_tables_have_their_size_and_values(name, shape, cell, value):
    steps, table = published_table(name)
    assert table.shape == (len(steps), 12) == shape
    assert table[cell] == value


def test_an_illegible_cell_is_nan():
    steps, table = published_table("similarity_of_errors_gradient_descent_isotropic")
    assert np.argwhere(np.isnan(table)).tolist() == [[steps.index(64), 3]]


def test_an_unknown_table_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="name = 'nothing': must be one of similarity_of_errors"):
        published_table("nothing")
