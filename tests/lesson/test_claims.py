"""The claims table: what it shows, what it carries, what it refuses; and the published tables."""

import json
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from companion.lesson.claims import (
    EVIDENCE,
    MIME,
    NOT_MEASURED,
    PUBLISHED,
    Claims,
    bibliography,
    by_size,
    cite,
    parse_claims,
    published_table,
    statements,
)
from companion.lesson.verdicts import NONE_PUBLISHED, Experiment

LESSON = "99-sample"
FILE = """
[first]
kind = "theorem"
statement = "a < b & c"
source = "chen2024multihead"
where = "<b>'theorem'</b> 1"
published = "1.0"
threshold = "a below b"
control = "b & a: 2"

[first.evidence]
exact = true
fails = true

[second]
kind = "course"
statement = "c"
source = "course"
where = "-"
published = "-"
threshold = "c above 4"
interval = "95 % over five seeds"
reference = "a solver"

[third]
kind = "experiment"
statement = "d"
source = "vonoswald2023"
where = "table 1"
published = "3.0"
threshold = "d below 3"
reference = "a solver"

[third.evidence]
of = "d, three seeds"
over = "seeds"
published = 3
ours = [1, 1.5, 2]

[fourth]
kind = "check"
statement = "e"
source = "vonoswald2023"
where = "table 2"
published = "0"
threshold = "e at 0"
reference = "a solver"
"""
FIRST = {
    "id": "first",
    "kind": "theorem",
    "statement": "a < b & c",
    "source": "Chen and Li 2024, <b>'theorem'</b> 1",
    "where": "<b>'theorem'</b> 1",
    "published": "1.0",
    "threshold": "a below b",
    "control": "b & a: 2",
    "interval": "",
    "reference": "",
    "trained": "",
    "checkpoint": "1.1",
    "run": "-",
    "expected": {"checkpoint": "as expected"},
    "verdict": "reproduced",
    "why": "exact, and its negative world fails",
}
SECOND = {
    "id": "second",
    "kind": "course",
    "statement": "c",
    "source": "this course",
    "where": "-",
    "published": "-",
    "threshold": "c above 4",
    "control": "",
    "interval": "95 % over five seeds",
    "reference": "a solver",
    "trained": "",
    "checkpoint": "5.0",
    "run": "3.0",
    "expected": {"checkpoint": "as expected", "run": "not as expected"},
    "verdict": "",
    "why": "",
}
WHY = "d, three seeds: 1.5 (1, 1.5, 2) for 3"
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
    assert json.loads(json.dumps(bundle[EVIDENCE])) == {"first": {"exact": [1.0]}}


def test_what_is_measured_of_evidence_is_carried_along(lesson):
    claims = Claims(lesson)
    claims.evidence("third", ours=np.array([1, 2.5]), interval=(0.5, 3))
    claims.evidence("first", fails=np.bool_(False))
    claims.record("first", run="1", holds=True, fails=True)
    assert claims.rows[0].expected == {"run": "as expected"}
    third = {"ours": [1.0, 2.5], "interval": [0.5, 3.0]}
    assert claims._repr_mimebundle_()[EVIDENCE] == {"third": third, "first": {"fails": [1.0], "exact": [1.0]}}
    claims = Claims(lesson)
    claims.saw("first", "1", exact=True, fails=False)
    assert claims.rows[0].expected == {"run": "not as expected"}
    assert claims.believe({"first": "b"})._repr_mimebundle_()[EVIDENCE] == {"first": {"exact": [1.0], "fails": [0.0]}}
    smoke = Claims(lesson, "smoke")
    smoke.evidence("third", ours=[float("nan")])
    assert smoke.measured == {}


def test_a_size_beside_another_is_measured_for_itself_and_comes_from_where_the_first_does(lesson):
    claims = Claims(lesson)
    third, own = claims.statements["third"], Experiment("leads", "seeds", ours=(1, 2, 3), run="own")
    sizes = replace(third.evidence, run="first", beside=(own, replace(own, run="")))
    claims.statements["third"] = replace(third, evidence=sizes)
    found = by_size(claims.statements)
    assert [found[key].run for key in ("third", "third/1", "third/2")] == ["first", "own", "first"]
    claims.evidence("third", beside=2, ours=[4])
    assert claims.measured == {"third/2": {"ours": [4.0]}}
    with pytest.raises(ValueError, match="id = 'third/3': must be a claim"):
        claims.evidence("third", beside=3, ours=[4])


@pytest.mark.parametrize(
    ("id", "told"),
    [
        ("second", {"ours": [1]}),
        ("none", {"ours": [1]}),
        ("first", {"ours": [1]}),
        ("third", {"fails": True}),
        ("third", {}),
    ],
)
def test_a_measurement_of_no_evidence_is_refused(lesson, id, told):
    with pytest.raises(ValueError, match=f"id = '{id}': must be a claim whose evidence has"):
        Claims(lesson).evidence(id, **told)


def test_a_measurement_of_a_run_is_refused_where_a_stored_table_is_the_evidence(lesson):
    claims = Claims(lesson)
    third = claims.statements["third"]
    claims.statements["third"] = replace(third, evidence=replace(third.evidence, stored=("table",)))
    with pytest.raises(ValueError, match="id = 'third': must be a claim whose evidence comes from a run"):
        claims.evidence("third", ours=[1])


def test_only_a_theorem_has_a_world_that_fails(lesson):
    with pytest.raises(ValueError, match="claim 'third': fails = True: must be None, except for a theorem"):
        Claims(lesson).record("third", run="1", holds=True, fails=True)


class Cells(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), []
        self.feed(page)

    def handle_starttag(self, tag, _):
        self.tags.add(tag)
        if tag in ("td", "th", "caption"):
            self.text.append("")

    def handle_data(self, data):
        self.text[-1] += data


HEADS = ["Published", "Our bar", "Checked by", "Shipped checkpoint", "This run"]


def test_the_page_has_every_cell_and_no_tag_that_a_claim_brought(bundle):
    page = Cells(bundle["text/html"])
    assert page.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert page.text == [
        "Claims", "Claim", "Verdict", *HEADS,
        "a < b & c (Chen and Li 2024, <b>'theorem'</b> 1)", "reproduced: exact, and its negative world fails",
        "1.0", "a below b", "control: b & a: 2", "1.1 (as expected)", "-",
        "c (this course)", "the course's own", "-", "c above 4", "interval: 95 % over five seeds; reference: a solver",
        "5.0 (as expected)", "3.0 (not as expected)",
    ]  # fmt: skip


def test_checks_stand_apart_and_have_no_verdict(claims, capsys):
    claims.record("fourth", run="0", holds=True)
    text = claims._repr_mimebundle_()["text/plain"].splitlines()
    assert text[0] == "Claims" and text[1] == " | ".join(["Claim", "Verdict", *HEADS])
    assert text[4:] == [
        "Checks",
        " | ".join(["Check", *HEADS]),
        "e (von Oswald et al. 2023, table 2) | 0 | e at 0 | reference: a solver | - | 0 (as expected)",
    ]
    claims.verdicts()
    assert capsys.readouterr().out == "first: reproduced\n"


def test_a_verdict_is_of_a_source_s_claim_and_decided_by_what_is_stored(claims, capsys):
    claims.record("third", run="2.9", holds=True)
    assert (claims.rows[-1].verdict, claims.rows[-1].why) == ("same direction, weaker", WHY)
    claims.verdicts()
    assert capsys.readouterr().out == "first: reproduced\nthird: same direction, weaker\n"


def test_a_run_that_contradicts_a_theorem_is_told(lesson, capsys):
    claims = Claims(lesson)
    claims.record("first", run="2", holds=False)
    claims.record("third", run="2", holds=False)
    claims.verdicts()
    assert capsys.readouterr().out == (
        "first: reproduced, but this run contradicts it\nthird: same direction, weaker\n"
    ), "an experiment's verdict does not hang on one run"
    assert claims.rows[0].verdict == "reproduced"
    assert "reproduced: but this run contradicts it; exact, and" in claims._repr_mimebundle_()["text/plain"]


def test_a_table_may_be_empty(lesson):
    assert Claims(lesson, "course")._repr_mimebundle_()[MIME] == []


def test_without_a_published_claim_the_verdicts_say_so(lesson, capsys):
    claims = Claims(lesson, "course")
    claims.record("second", run="3", holds=True)
    claims.record("fourth", run="0", holds=True)
    claims.verdicts()
    assert capsys.readouterr().out == f"{NONE_PUBLISHED}\n"


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        (True, {"checkpoint": "as expected", "run": "as expected"}),
        (False, {"checkpoint": "not as expected", "run": "not as expected"}),
        (None, {}),
        ({"checkpoint": None, "run": np.bool_(False)}, {"run": "not as expected"}),
        ({"checkpoint": True}, {"checkpoint": "as expected"}),
    ],
)
def test_each_column_is_as_expected_or_not_by_the_course_s_own_bar(lesson, holds, expected):
    for scale in ("course", "paper"):
        claims = Claims(lesson, scale)
        claims.record("third", checkpoint="1", run="2", holds=holds)
        assert (claims.rows[0].expected, claims.rows[0].verdict) == (expected, "same direction, weaker")


@pytest.mark.parametrize("holds", [True, False, np.bool_(True), {"run": True}])
def test_nothing_is_assessed_at_smoke_scale(lesson, holds, capsys):
    claims = Claims(lesson, "smoke")
    claims.record("first", run="2", holds=holds)
    claims.record("second", run="2", holds=holds)
    assert [row.expected for row in claims.rows] == [{}, {}]
    claims.verdicts()
    assert capsys.readouterr().out == "first: not assessed\n"


def test_the_end_says_what_the_paper_says_what_you_saw_and_what_to_believe(lesson):
    claims = Claims(lesson)
    claims.saw("first", "1.1", exact=True)
    claims.saw("second", "3")
    claims.saw("third", "2.9")
    shown = claims.believe({"third": "Half is there.", "first": "A proof.", "second": "It is so."})._repr_mimebundle_()
    assert Cells(shown["text/html"]).text == [
        "The paper says", "You saw", "Believe",
        "a < b & c: 1.0 (Chen and Li 2024, <b>'theorem'</b> 1)", "1.1", "Reproduced. A proof.",
        "c (this course's own claim, no paper's)", "3", "It is so.",
        "d: 3.0 (von Oswald et al. 2023, table 1)", "2.9", "Same direction, weaker. Half is there.",
    ]  # fmt: skip
    assert [row["id"] for row in shown[MIME]] == ["first", "second", "third"]
    assert [row["expected"] for row in shown[MIME]] == [{"run": "as expected"}, {}, {}]


def test_what_you_saw_is_not_judged_but_against_a_theorem(lesson, capsys):
    claims = Claims(lesson)
    with pytest.raises(ValueError, match="claim 'third': exact = True: must be None, as this claim is not a theorem"):
        claims.saw("third", "2.9", exact=True)
    claims.saw("first", "2", exact=False)
    claims.verdicts()
    assert capsys.readouterr().out == "first: reproduced, but this run contradicts it\n"
    assert "Reproduced, but this run contradicts it. Hm." in claims.believe({"first": "Hm."}).parts[""][1][0]


def test_a_cell_that_runs_again_replaces_its_row(lesson):
    claims = Claims(lesson)
    for run in ("1", "3"):
        claims.saw("first", run)
        claims.saw("third", run)
    claims.saw("first", "2")
    assert [(row.id, row.run) for row in claims.rows] == [("first", "2"), ("third", "3")]


def test_a_claim_whose_cell_failed_is_said_to_be_not_measured(lesson):
    claims = Claims(lesson)
    claims.saw("third", "3")
    first, third = claims.believe({"third": "Half is there.", "first": "A proof."}).parts[""][1]
    assert first[1:] == (NOT_MEASURED, "A proof.")
    assert third[1] == "3"


def test_there_are_words_for_each_claim_that_was_seen_and_for_six_at_most(lesson):
    claims = Claims(lesson)
    claims.saw("first", "1")
    for words in ({}, {"second": "It is so."}, {"first": "A proof.", "fifth": "It is so."}):
        with pytest.raises(ValueError, match=r"words = .*: must be for claims of the lesson, .*\['first'\], at most 6"):
            claims.believe(words)
    claims.rows = [replace(claims.rows[0], id=str(number)) for number in range(7)]
    with pytest.raises(ValueError, match="at most 6"):
        claims.believe({row.id: "Yes." for row in claims.rows})


@pytest.mark.parametrize(
    "row, message",
    [
        ({"id": "fifth", "run": "1"}, "id = 'fifth': must be one of first, second, third, fourth"),
        ({"id": "third"}, "claim 'third': must have a measured figure, as checkpoint=... or run=..."),
        ({"id": "third", "checkpoint": "-", "run": "-"}, "claim 'third': must have a measured figure"),
        (
            {"id": "third", "run": "1", "holds": {"checkpoint": True}},
            r"holds has the columns \['checkpoint'\]: must have .*'run'",
        ),
        ({"id": "third", "run": "1", "holds": {}}, r"holds has the columns \[\]"),
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
        (
            'source = "chen2024multihead"',
            'source = "nobody1999"',
            "'first': source = 'nobody1999': must be 'course' or a key",
        ),
        ('control = "b & a: 2"\n', "", "'first': must name a control, an interval or a reference"),
        ('"b & a: 2"', '"none yet: to be found"', "'first': must name a control, an interval or a reference"),
        ('"b & a: 2"', '"-"', "'first': must name a control, an interval or a reference"),
        ('"b & a: 2"', "2", "'first': control = 2: must be a text"),
        ('published = "1.0"\n', "", "'first': must have published, too"),
        ('published = "1.0"', 'published = " "', "'first': published = ' ': must not be empty"),
        ('published = "1.0"', 'published = "-"', "'first': where = .*, published = '-': may be '-' only where"),
        (
            "where = \"<b>'theorem'</b> 1\"",
            'where = "-"',
            "'first': where = '-', published = '1.0': may be '-' only where",
        ),
        (
            "control =",
            "controls =",
            "'first': has the keys controls: must be among kind, statement, source",
        ),
        (
            'kind = "theorem"',
            'kind = "lemma"',
            "'first': kind = 'lemma': must be one of theorem, experiment, course, check",
        ),
        (
            'kind = "theorem"',
            'kind = "course"',
            "'first': must have no evidence, as nothing is decided from it where kind = 'course'",
        ),
        (
            'source = "vonoswald2023"\nwhere = "table 1"',
            'source = "course"\nwhere = "table 1"',
            "'third': kind = 'experiment': must be 'course', or 'check', where source = 'course'",
        ),
        (
            'kind = "course"',
            'kind = "theorem"',
            "'second': must have evidence, from which its verdict is decided, as kind = 'th",
        ),
        (
            'kind = "theorem"',
            'kind = "check"',
            "'first': must have no evidence, as nothing is decided from it where kind = 'check'",
        ),
        ("[third.evidence]", "[fourth.evidence]", "Cannot declare|'third': must have evidence"),
        ("exact = true", 'exact = "yes"', "'first.evidence': exact = 'yes': must be true or false"),
        ("fails = true", "", "'first.evidence': must have fails, too"),
        (
            "ours = [1, 1.5, 2]",
            "our = [1, 1.5, 2]",
            "'third.evidence': has the keys our: must be among of",
        ),
        (
            "ours = [1, 1.5, 2]",
            'ours = "many"',
            "'third.evidence': ours = 'many': must be a number or a list of numbers",
        ),
        ("ours = [1, 1.5, 2]", "", "'third': ours = \\[\\]: must have numbers where there is no interval"),
        ("published = 3\n", "published = -3\n", "'third': published = -3: must be above 0"),
        ("[first]", "id = 1\n[first]", "'id': is 1; must be a table"),
        ("[second]", "[first]", "Cannot declare"),
    ],
)
def test_a_file_with_a_fault_is_refused_and_the_claim_named(old, new, message):
    assert old in FILE
    with pytest.raises(ValueError, match=message):
        parse_claims(tomllib.loads(FILE.replace(old, new)))


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
    points, sphere = published_table("structures_sphere")
    assert (points, sphere.tolist()) == ([100], [[6, 30, 34.4, 35.3, 35.1, 35]]), "SimHash to the network, table 1"


def test_a_cell_without_a_figure_is_nan_and_no_other():
    empty = []
    for file in PUBLISHED.glob("*.csv"):
        steps, table = published_table(file.stem)
        empty += [(file.stem, steps[row], column + 1) for row, column in np.argwhere(np.isnan(table))]
    assert sorted(empty) == [
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
