"""The class on one page: a histogram, what was said of each exercise, who needs a person."""

from statistics import mean, median

from companion.workshop.grading.course.book import Book
from companion.workshop.grading.course.feedback import OUTCOMES, PAGES, diagnoses, needing_a_person, outcomes

BARS = 10


def class_page(book: Book, failed: list[str]) -> str:
    """Return the page as HTML, without a script."""
    totals = [book.total(student) for student in book.results]
    return PAGES.get_template("class.html").render(
        title=book.handout.name,
        many=len(totals),
        absent=len(book.everybody()) - len(totals),
        out_of=f"{book.handout.points:g}",
        average=f"{mean(totals):.3g}" if totals else "–",
        middle=f"{median(totals):g}" if totals else "–",
        bars=histogram(totals, book.handout.points),
        outcomes=OUTCOMES,
        exercises=[
            {
                "name": question.answer_id,
                "counts": [outcomes(book, question.id)[name] for name in OUTCOMES],
                "diagnoses": diagnoses(book, question.id)[:10],
            }
            for question in book.handout.automatic
        ],
        people=needing_a_person(book),
        failed=[book.label(student) for student in failed],
    )


def histogram(totals: list[float], most: float) -> list[dict]:
    """Return how many have how many points: bars from 0 to ``most``, each with its height in percent of the highest."""
    many = [0] * BARS
    for points in totals:
        many[min(BARS - 1, int(BARS * points / most)) if most else 0] += 1
    step = most / BARS
    return [
        {
            "low": f"{step * number:g}",
            "high": f"{step * (number + 1):g}",
            "many": count,
            "height": 100 * count // max(1, *many),
        }
        for number, count in enumerate(many)
    ]
