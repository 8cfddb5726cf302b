"""The claims table: what it shows, what it carries, what it refuses; and the published tables."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from companion.claims import MIME, PUBLISHED, Claims, published_table

FIRST = {"id": "first", "statement": "a < b & c", "source": '<b>"Somebody"</b> 2024', "published": "1.0", "checkpoint": "1.1", "run": "-"}
SECOND = {"id": "second", "statement": "c", "source": "Somebody 2024", "published": "2.0", "checkpoint": "-", "run": "3.0"}
GD, NEWTON = "similarity_of_errors_gradient_descent", "similarity_of_errors_iterative_newton"


@pytest.fixture
def claims():
    table = Claims()
    table.add(**{key: value for key, value in FIRST.items() if value != "-"}, holds=True)
    table.add(**{key: value for key, value in SECOND.items() if value != "-"}, holds=np.bool_(False))
    return table


@pytest.fixture
def bundle(claims):
    data, _ = InteractiveShell.instance().display_formatter.format(claims)  # what a notebook keeps
    return data


def test_the_table_carries_its_rows_as_json(bundle):
    assert json.loads(json.dumps(bundle[MIME])) == [FIRST | {"holds": True}, SECOND | {"holds": False}]


class Cells(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), []
        self.feed(page)

    def handle_starttag(self, tag, _):
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.text.append("")

    def handle_data(self, data):
        self.text[-1] += data


def test_the_page_has_every_cell_and_no_tag_that_a_claim_brought(bundle):
    page = Cells(bundle["text/html"])
    assert page.tags == {"table", "thead", "tbody", "tr", "th", "td"}
    assert page.text == [
        "Claim", "Published", "Shipped checkpoint", "This run", "Holds",
        'a < b & c (<b>"Somebody"</b> 2024)', "1.0", "1.1", "-", "yes",
        "c (Somebody 2024)", "2.0", "-", "3.0", "no",
    ]  # fmt: skip


def test_plain_text_has_a_line_for_each_claim(bundle):
    head, *lines = bundle["text/plain"].splitlines()
    assert head == "Claim | Published | Shipped checkpoint | This run | Holds"
    assert lines == ['a < b & c (<b>"Somebody"</b> 2024) | 1.0 | 1.1 | - | yes', "c (Somebody 2024) | 2.0 | - | 3.0 | no"]


def test_verdicts_are_a_line_each(claims, capsys):
    claims.verdicts()
    assert capsys.readouterr().out == "first: holds\nsecond: does not hold\n"


def test_a_table_may_be_empty(capsys):
    assert Claims()._repr_mimebundle_()[MIME] == []
    Claims().verdicts()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "row, message",
    [
        ({"id": "first", "run": "1"}, "id = 'first': there is such a claim already"),
        ({"id": "third"}, "claim 'third': needs a measured figure, of the checkpoint or of this run"),
        ({"id": "third", "checkpoint": "-", "run": "-"}, "claim 'third': needs a measured figure"),
    ],
)
def test_a_refused_claim_leaves_the_table_as_it_was(claims, row, message):
    before = list(claims.rows)
    with pytest.raises(ValueError, match=message):
        claims.add(statement="s", source="s", published="p", holds=True, **row)
    assert claims.rows == before


# -- Published tables


@pytest.mark.parametrize(
    "name, steps",
    [
        (f"{NEWTON}_ill_conditioned", list(range(1, 24))),
        (f"{GD}_ill_conditioned", [1, *range(100, 3001, 100)]),
        (f"{GD}_isotropic", [1, 2, 4, 8, 16, 32, 64, 512, 1024, 2048, 4096]),
    ],
)
def test_published_tables_have_their_steps_and_twelve_layers_of_similarities(name, steps):
    found, table = published_table(name)
    assert found == steps
    assert table.shape == (len(steps), 12)
    filled = table[np.isfinite(table)]
    assert filled.min() > 0.38 and filled.max() < 1
    assert np.array_equal(filled, filled.round(3))


@pytest.mark.parametrize(
    "name, step, layer, value",
    [
        (f"{NEWTON}_ill_conditioned", 13, 6, 0.977),
        (f"{NEWTON}_ill_conditioned", 1, 1, 0.885),
        (f"{NEWTON}_ill_conditioned", 23, 12, 0.975),
        (f"{GD}_ill_conditioned", 1, 1, 0.990),
        (f"{GD}_ill_conditioned", 3000, 12, 0.986),
        (f"{GD}_isotropic", 512, 7, 0.971),
        (f"{GD}_isotropic", 4096, 12, 0.988),
    ],
)
def test_published_tables_have_their_values(name, step, layer, value):
    steps, table = published_table(name)
    assert table[steps.index(step), layer - 1] == value


def test_the_isotropic_table_has_the_published_best_matches():
    """Layer 7 matches best at 256 steps, a row that the source does not show legibly."""
    steps, table = published_table(f"{GD}_isotropic")
    best = {1: (1, 0.953), 2: (1, 0.953), 3: (4, 0.913), 4: (8, 0.905), 5: (32, 0.914), 6: (64, 0.947), 8: (512, 0.982), 9: (1024, 0.986),
            10: (4096, 0.987), 11: (4096, 0.988), 12: (4096, 0.988)}  # fmt: skip
    row = np.nanargmax(table, axis=0)
    assert {layer: (steps[row[layer - 1]], table[row[layer - 1], layer - 1]) for layer in best} == best


def test_an_illegible_cell_is_nan_and_no_other():
    illegible = []
    for file in PUBLISHED.glob("*.csv"):
        steps, table = published_table(file.stem)
        illegible += [(file.stem, steps[row], column + 1) for row, column in np.argwhere(np.isnan(table))]
    assert illegible == [(f"{GD}_isotropic", 64, 4)]


@pytest.mark.parametrize("name", ["nothing", "", "../claims", f"{GD}_isotropic.csv"])
def test_an_unknown_table_is_named_with_those_there_are(name):
    with pytest.raises(ValueError, match=rf"name = '{name}': must be one of {GD}_ill_conditioned, {GD}_isotropic, {NEWTON}"):
        published_table(name)
