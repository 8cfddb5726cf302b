"""The atlas of claims, read as a person reads it and as a program does."""

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sample_lesson import CLAIM, FACTS

from companion.core.measuring import measured_table
from companion.lesson.claims import Claims, bibliography, statements
from companion.workshop.cli.lessons import all_lessons
from companion.workshop.site import atlas
from companion.workshop.site.course import Chapter, Course

ROOT = Path(__file__).resolve().parents[3]
PICTURE = new_output("display_data", {"image/png": "x"})


@pytest.fixture
def executed(tmp_path) -> Path:
    """A notebook that measures two claims, one of them below a picture."""
    cells = [
        new_markdown_cell("# A"),
        new_code_cell("draw()", outputs=[new_output("stream", text="drawn"), PICTURE]),
        new_code_cell('claims.saw("doubles", "2")'),
        new_markdown_cell("## B"),
        new_code_cell('claims.record(\n    "halves", run="1")'),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "01-a.ipynb")
    return tmp_path / "01-a.ipynb"


def chapter(executed: Path, *claims: dict, name: str = "01-a") -> Chapter:
    return Chapter(name, FACTS, executed, Path(), {"lesson": name, "scale": "smoke", "seed": 3, "claims": list(claims)})


def read(page: str) -> list[tuple[str, dict[str, str]]]:
    """The claims of a page, as a person reads them: what stands in view, and what opens, by its heads."""
    start = page.index('<div class="claims">')
    found = ElementTree.fromstring(page[start:].replace("<img ", "<i ").replace('lesson">', 'lesson"/>'))
    told = []
    for claim in found.iter("details"):
        heads, texts = ([" ".join(each.itertext()) for each in claim.iter(tag)] for tag in ("dt", "dd"))
        told.append(("".join(claim.find("summary").itertext()), dict(zip(heads, texts, strict=True))))
    return told


def test_a_claim_reads_as_a_person_reads_it(executed):
    other = CLAIM | {"id": "halves", "verdict": "different", "statement": "x < 1 & y", "checkpoint": "3"}
    page = atlas.page(Course(ROOT, [chapter(executed, CLAIM, other)]))
    (first, told), (second, opened) = read(page)
    assert first == "reproduced Doubles 01 · this course"
    assert told == {
        "Published": "2",
        "Where": "Euclid, book VII",
        "Ours": "twice a number: 2 for 2",
        "This run": "2 (as expected)",
        "Our bar": "exactly 2",
        "Control": "halving: 0.5",
        "Measured in": "01 · Doubling",
        "Again": "python3 -m companion run 01 --scale smoke --seed 3",
        "Address": "#01-doubles",
    }
    assert second == "different x < 1 & y 01 · this course" and opened["Our checkpoint"] == "3"
    assert 'data-verdict="different"' in page and "scale smoke, seed 3" in page


def test_a_claim_names_what_makes_its_checkpoint_again(executed):
    notebook = nbformat.read(executed, as_version=4)
    notebook.cells.insert(1, new_code_cell('model, _ = shipped("regression-isotropic")'))
    notebook.cells[3].source = 'claims.saw("doubles", f"{model}")'
    nbformat.write(notebook, executed)
    course = Course(ROOT, [chapter(executed, CLAIM, CLAIM | {"id": "halves"})])
    run = "python3 -m companion run 01 --scale smoke --seed 3"
    (_, first), (_, second) = read(atlas.page(course))
    assert first["Again"] == f"{run} python3 -m companion train regression-isotropic"
    assert second["Again"] == run
    told = json.loads(atlas.as_json(course))["claims"]
    assert told[0]["again"] == [run, "python3 -m companion train regression-isotropic"]


def test_a_claim_leads_to_its_cell_and_shows_the_picture_above_it_in_its_section(executed):
    one = chapter(executed, CLAIM, CLAIM | {"id": "halves"}, CLAIM | {"id": "trebles"})
    assert atlas.places(one) == {"doubles": ("01-a", "01-a-1-1"), "halves": ("01-a", "")}
    page = atlas.page(Course(ROOT, [one]))
    assert page.count("data-src=") == 1 and 'data-src="_static/pictures/01-a-1-1.png"' in page
    for link in ("01-a.html#measured-doubles", "01-a.html#measured-halves", "01-a.html"):
        assert f'href="lessons/01-a/{link}"' in page


def test_what_is_no_claim_of_a_source_says_what_it_is(executed):
    [(told, opened)] = read(
        atlas.page(Course(ROOT, [chapter(executed, CLAIM | {"kind": "check", "verdict": "", "why": ""})]))
    )
    assert told.startswith("check Doubles") and "Ours" not in opened


def of_the_course() -> Course:
    """Each claim of the course, as a run reports them that measured nothing."""
    chapters = []
    for lesson in all_lessons(ROOT):
        claims = Claims(lesson.name)
        for id in claims.statements:
            claims.record(id, run="0", holds=None)
        rows = [atlas.asdict(row) for row in claims.rows]
        chapters.append(chapter(lesson.source, *rows, name=lesson.name))
    return Course(ROOT, chapters)


def test_every_claim_of_the_course_is_on_the_page_and_in_the_list():
    course = of_the_course()
    there = {f"{lesson.name[:2]}-{id}" for lesson in all_lessons(ROOT) for id in statements(lesson.name)}
    page = atlas.page(course)
    assert {name for name in there if f'<details id="{name}"' in page} == there
    told = json.loads(atlas.as_json(course))
    schema = json.loads(Path(atlas.__file__).with_name("claims.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(told, schema)
    assert {f"{claim['lesson'][:2]}-{claim['id']}" for claim in told["claims"]} == there
    judged = [claim for claim in told["claims"] if claim["verdict"]]
    assert all(claim["evidence"] and claim["key"] in bibliography().entries for claim in judged)
    for claim in judged:
        stored = {f"python3 -m companion measure {name}" for name in claim["evidence"].get("stored", ())}
        assert stored <= {*claim["again"]}, claim["id"]
    with pytest.raises(jsonschema.ValidationError, match="'why' is a required property"):
        jsonschema.validate(
            {"version": 2, "claims": [{key: value for key, value in judged[0].items() if key != "why"}]}, schema
        )


def test_what_was_trained_at_which_size_is_a_table():
    rows = list(ElementTree.fromstring(atlas.sizes(of_the_course())).iter("tr"))[1:]
    told = {row.find("th/a").get("href"): ["".join(cell.itertext()) for cell in row.iter("td")] for row in rows}
    claims = {name: claim for lesson in all_lessons() for name, claim in statements(lesson.name).items()}
    assert {id[4:] for id in told} == {id for id, claim in claims.items() if getattr(claim.evidence, "stored", ())}
    published, size, verdict, minutes = told["#04-slow-waves-needed"]
    claim = claims["slow-waves-needed"]
    assert (published, size, verdict) == (claim.published, claim.evidence.size, claim.verdict())
    assert minutes == measured_table(claim.evidence.stored[0]).header["minutes"]


def test_the_summary_counts_what_became_of_each_source():
    course = of_the_course()
    text = atlas.summary(course)
    table = ElementTree.fromstring(text)
    heads, *rows = ([("".join(cell.itertext())) for cell in row] for row in table.iter("tr"))
    assert heads[:5] == ["Source", "reproduced", "same direction, weaker", "different", "not assessed"]
    judged = [claim for one in course.chapters for claim in one.entry["claims"] if claim["verdict"]]
    assert sum(int(cell) for row in rows for cell in row[1:5] if cell != "–") == len(judged)
    reproduced = sum(int(row[1]) for row in rows if row[1] != "–")
    assert reproduced == sum(claim["verdict"] == "reproduced" for claim in judged)
