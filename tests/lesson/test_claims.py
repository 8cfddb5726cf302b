"""The claims table: what it shows, what it carries, what it refuses; and the published tables."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from companion.lesson.claims import (
    MIME,
    PUBLISHED,
    Claims,
    bibliography,
    cite,
    parse_claims,
    published_table,
    statements,
)

LESSON = "99-sample"
FILE = """
[first]
statement = "a < b & c"
source = "chen2024multihead"
where = "<b>'theorem'</b> 1"
published = "1.0"
threshold = "a below b"
control = "b & a: 2"

[second]
statement = "c"
source = "course"
where = "-"
published = "-"
threshold = "c above 4"
interval = "95 % over five seeds"
reference = "a solver"

[third]
statement = "d"
source = "vonoswald2023"
where = "table 1"
published = "3.0"
threshold = "d below 3"
reference = "a solver"
"""
FIRST = {
    "id": "first",
    "statement": "a < b & c",
    "source": "Chen and Li 2024, <b>'theorem'</b> 1",
    "where": "<b>'theorem'</b> 1",
    "published": "1.0",
    "threshold": "a below b",
    "control": "b & a: 2",
    "interval": "",
    "reference": "",
    "checkpoint": "1.1",
    "run": "-",
    "verdict": "holds",
    "verdicts": {"checkpoint": "holds"},
}
SECOND = {
    "id": "second",
    "statement": "c",
    "source": "this course",
    "where": "-",
    "published": "-",
    "threshold": "c above 4",
    "control": "",
    "interval": "95 % over five seeds",
    "reference": "a solver",
    "checkpoint": "5.0",
    "run": "3.0",
    "verdict": "does not hold",
    "verdicts": {"checkpoint": "holds", "run": "does not hold"},
}
GD, NEWTON = "similarity_of_errors_gradient_descent", "similarity_of_errors_iterative_newton"


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """A lesson's file of claims."""
    bibliography()  # the course's, before its folder is exchanged
    (tmp_path / f"{LESSON}.toml").write_text(FILE)
    monkeypatch.setattr("companion.lesson.claims.PUBLISHED", tmp_path)
    return LESSON


@pytest.fixture
def claims(lesson):
    table = Claims(lesson, "course")
    table.record("first", checkpoint="1.1", holds=True)
    table.record("second", checkpoint="5.0", run="3.0", holds={"checkpoint": True, "run": np.bool_(False)})
    return table


@pytest.fixture
def bundle(claims):
    data, _ = InteractiveShell.instance().display_formatter.format(claims)  # what a notebook keeps
    return data


def test_the_table_carries_its_rows_as_json(bundle):
    assert json.loads(json.dumps(bundle[MIME])) == [FIRST, SECOND]


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
        "Claim", "Published", "Holds if", "Checked by", "Shipped checkpoint", "This run", "Verdict",
        "a < b & c (Chen and Li 2024, <b>'theorem'</b> 1)", "1.0", "a below b", "control: b & a: 2",
        "1.1", "-", "holds",
        "c (this course)", "-", "c above 4", "interval: 95 % over five seeds; reference: a solver",
        "5.0 (holds)", "3.0", "does not hold",
    ]  # fmt: skip


def test_plain_text_has_a_line_for_each_claim(bundle):
    head, first, second = bundle["text/plain"].splitlines()
    assert head == "Claim | Published | Holds if | Checked by | Shipped checkpoint | This run | Verdict"
    assert first.startswith("a < b & c (Chen and Li 2024") and first.endswith(" | 1.1 | - | holds")
    assert second.endswith(" | 5.0 (holds) | 3.0 | does not hold")


def test_verdicts_are_a_line_each(claims, capsys):
    claims.record("third", run="2", holds=None)
    claims.verdicts()
    assert capsys.readouterr().out == "first: holds\nsecond: does not hold\nthird: not assessed\n"


def test_a_table_may_be_empty(lesson, capsys):
    assert Claims(lesson, "course")._repr_mimebundle_()[MIME] == []
    Claims(lesson, "course").verdicts()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("holds", "overall", "columns"),
    [
        (True, "holds", ["holds", "holds"]),
        (False, "does not hold", ["does not hold", "does not hold"]),
        (None, "not assessed", ["not assessed", "not assessed"]),
        ({"checkpoint": True, "run": True}, "holds", ["holds", "holds"]),
        ({"checkpoint": True, "run": False}, "does not hold", ["holds", "does not hold"]),
        ({"checkpoint": None, "run": False}, "does not hold", ["not assessed", "does not hold"]),
        ({"checkpoint": True, "run": None}, "not assessed", ["holds", "not assessed"]),
        ({"checkpoint": True}, "holds", ["holds", "not assessed"]),
    ],
)
def test_a_verdict_for_each_column_and_one_for_all(lesson, holds, overall, columns):
    for scale in ("course", "paper"):
        claims = Claims(lesson, scale)
        claims.record("first", checkpoint="1", run="2", holds=holds)
        assert claims.rows[0].verdict == overall
        assert list(claims.rows[0].verdicts.values()) == columns


@pytest.mark.parametrize("holds", [True, False, np.bool_(True), {"run": True}])
def test_nothing_is_assessed_at_smoke_scale(lesson, holds):
    claims = Claims(lesson, "smoke")
    claims.record("first", run="2", holds=holds)
    assert (claims.rows[0].verdict, claims.rows[0].verdicts) == ("not assessed", {"run": "not assessed"})


@pytest.mark.parametrize(
    "row, message",
    [
        ({"id": "first", "run": "1"}, "id = 'first': there is such a claim already"),
        ({"id": "fourth", "run": "1"}, "id = 'fourth': must be one of first, second, third"),
        ({"id": "third"}, "claim 'third': needs a measured figure, of the checkpoint or of this run"),
        ({"id": "third", "checkpoint": "-", "run": "-"}, "claim 'third': needs a measured figure"),
        (
            {"id": "third", "run": "1", "holds": {"checkpoint": True}},
            r"holds judges \['checkpoint'\]; there are .*'run'",
        ),
        ({"id": "third", "run": "1", "holds": {}}, r"holds judges \[\]"),
    ],
)
def test_a_refused_claim_leaves_the_table_as_it_was(claims, row, message):
    before = list(claims.rows)
    with pytest.raises(ValueError, match=message):
        claims.record(**{"holds": True} | row)
    assert claims.rows == before


def test_an_unknown_lesson_or_scale_is_named(lesson):
    with pytest.raises(ValueError, match=r"lesson = '98-nothing': must be one of 99-sample"):
        Claims("98-nothing", "course")
    with pytest.raises(ValueError, match=r"scale = 'large': must be one of smoke, course, paper"):
        Claims(lesson, "large")


# -- Files of claims


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "chen2024multihead"', 'source = "nobody1999"', "'first': source = 'nobody1999': is no key"),
        ('control = "b & a: 2"\n', "", "'first': needs a control, an interval or a reference"),
        ('"b & a: 2"', '"none yet: to be found"', "'first': needs a control, an interval or a reference"),
        ('"b & a: 2"', '"-"', "'first': needs a control, an interval or a reference"),
        ('"b & a: 2"', "2", "'first': control = 2: must be a text"),
        ('published = "1.0"\n', "", "'first': lacks published"),
        ('published = "1.0"', 'published = " "', "'first': published must not be empty"),
        ('published = "1.0"', 'published = "-"', "'first': where and published may be '-' for a claim of the course's"),
        ("where = \"<b>'theorem'</b> 1\"", 'where = "-"', "'first': where and published may be '-'"),
        ("control =", "controls =", "'first': has the keys .*controls; there are statement, source"),
        ("[first]", "id = 1\n[first]", "'id': is no table"),
        ("[second]", "[first]", "Cannot declare"),
    ],
)
def test_a_file_with_a_fault_is_refused_and_the_claim_named(old, new, message):
    assert old in FILE
    with pytest.raises(ValueError, match=message):
        parse_claims(FILE.replace(old, new))


FILES = sorted(PUBLISHED.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_of_claims_is_well_formed(file):
    assert statements(file.stem)


def test_the_bibliography_names_authors_titles_and_years_and_where_to_find_them():
    for key, entry in bibliography().entries.items():
        assert entry.persons["author"] and {"title", "year"} <= set(entry.fields), key
        assert {"eprint", "doi", "url", "howpublished", "booktitle", "journal"} & set(entry.fields), key
        assert re.match(r"[a-z]+\d{4}[a-z]*$", key) and entry.fields["year"] in key, key
        assert re.fullmatch(r"\d{4}\.\d{4,5}|math/\d{7}", entry.fields.get("eprint", "1234.56789")), key


@pytest.mark.parametrize(
    ("key", "where", "text"),
    [
        ("hutter2021", "-", "Hutter 2021"),
        ("yang2021", "table 1", "Yang and Hu 2021, table 1"),
        ("vonoswald2023", "figure 2", "von Oswald et al. 2023, figure 2"),
        ("course", "-", "this course"),
    ],
)
def test_a_source_is_named_by_authors_and_year(key, where, text):
    assert cite(key, where) == text


# -- Published tables


@pytest.mark.parametrize(
    "name, steps",
    [
        (f"{NEWTON}_ill_conditioned", list(range(1, 24))),
        (f"{GD}_ill_conditioned", [1, *range(100, 3001, 100)]),
        (f"{GD}_isotropic", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]),
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
        (f"{GD}_isotropic", 128, 6, 0.941),
        (f"{GD}_isotropic", 256, 7, 0.973),
        (f"{GD}_isotropic", 512, 7, 0.971),
        (f"{GD}_isotropic", 4096, 12, 0.988),
    ],
)
def test_published_tables_have_their_values(name, step, layer, value):
    steps, table = published_table(name)
    assert table[steps.index(step), layer - 1] == value


def test_the_isotropic_table_has_the_published_best_matches():
    steps, table = published_table(f"{GD}_isotropic")
    best = {1: (1, 0.953), 2: (1, 0.953), 3: (4, 0.913), 4: (8, 0.905), 5: (32, 0.914), 6: (64, 0.947), 7: (256, 0.973),
            8: (512, 0.982), 9: (1024, 0.986), 10: (4096, 0.987), 11: (4096, 0.988), 12: (4096, 0.988)}  # fmt: skip
    row = np.nanargmax(table, axis=0)
    assert {layer: (steps[row[layer - 1]], table[row[layer - 1], layer - 1]) for layer in best} == best


def test_the_tables_of_learned_data_structures_are_as_printed():
    """Salemohamed et al. 2024, arXiv:2411.03253 v2: table 2 (appendix B.12.1), whole; sections 2.2 and 2.3, table 1."""
    slots, accuracy = published_table("structures_space")
    assert slots == [0, *(2**power for power in range(1, 8))]
    network, buckets = accuracy.T
    assert network.tolist() == [44.0, 47.9, 52, 58.8, 71.9, 75.3, 88.4, 91.3]
    assert buckets[1:].tolist() == [5.9, 11.7, 23.6, 44.5, 65.8, 81.1, 89.5]
    points, rivals = published_table("structures_rivals")
    assert points == [100, 100, 50, 100]
    assert rivals[0, :2].tolist() == [7, 99.5], "numbers stored in order, section 2.2"
    assert rivals[1:].tolist() == [
        [6, 75, 52],  # the square and a k-d tree, section 2.3
        [7, 97.7, 76.2],  # pictures of numbers, table 1
        [6, 35, 30],  # the sphere and LSH, table 1
    ]


def test_a_cell_without_a_figure_is_nan_and_no_other():
    empty = []
    for file in PUBLISHED.glob("*.csv"):
        steps, table = published_table(file.stem)
        empty += [(file.stem, steps[row], column + 1) for row, column in np.argwhere(np.isnan(table))]
    assert sorted(empty) == [
        *((f"{GD}_isotropic", *place) for place in ((64, 4), (128, 3), (128, 4), (128, 5), (256, 4), (256, 5))),
        ("structures_rivals", 100, 3),  # an order has no rival
        ("structures_space", 0, 2),  # nor have buckets without slots
    ]


@pytest.mark.parametrize("name", ["nothing", "", "../claims", f"{GD}_isotropic.csv"])
def test_an_unknown_table_is_named_with_those_there_are(name):
    with pytest.raises(
        ValueError,
        match=rf"name = '{name}': must be one of hop_errors_by_depth, "
        rf"{GD}_ill_conditioned, {GD}_isotropic, {NEWTON}",
    ):
        published_table(name)
