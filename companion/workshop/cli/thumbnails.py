"""A lesson's small picture, for the tables and cards that lead to it: the answered one where there is one."""

import hashlib
import io
from itertools import product

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from companion.core.files import atomic_write
from companion.workshop.cli.lessons import Lesson, LessonError

WIDTHS = (480, 400, 320, 240)  # pixels: the first that is small enough
COLOURS = (256, 64, 16)
MOST = 40_000  # bytes
SOURCE = "Source"  # where the file keeps the hash of the picture that it was made from: bytes differ between machines


def put_thumbnail(lesson: Lesson, *, write: bool) -> list[str]:
    """Make the small picture of ``lesson`` anew, on the disk only if ``write``, and return a line, if it was made from
    another picture. Raises LessonError where it cannot be small enough, and where there is no picture.
    """
    if not lesson.picture.is_file():
        raise LessonError(
            f"{lesson.name}: {lesson.picture.name} is missing; `run {lesson.name} --pictures` draws it; then `release` "
            "again"
        )
    content = lesson.picture.read_bytes()
    source, path = hashlib.sha256(content).hexdigest(), lesson.source.with_name("thumbnail.png")
    if path.is_file() and Image.open(io.BytesIO(path.read_bytes())).info.get(SOURCE) == source:
        return []
    if write:
        atomic_write(path, thumbnail(content, source, lesson.name))
    return [f"{lesson.name}/{path.name}: was made from another picture than {lesson.picture.name}; `release` makes it"]


def thumbnail(content: bytes, source: str, name: str) -> bytes:
    """Return the picture ``content``, as wide and with as many colours as fit into `MOST` bytes."""
    told = PngInfo()
    told.add_text(SOURCE, source)
    for width, colours in product(WIDTHS, COLOURS):
        picture, small = Image.open(io.BytesIO(content)).convert("RGB"), io.BytesIO()
        picture.thumbnail((width, width), Image.Resampling.LANCZOS)
        picture.quantize(colours).save(small, "png", optimize=True, pnginfo=told)
        if len(small.getvalue()) <= MOST:
            return small.getvalue()
    raise LessonError(f"{name}: its picture takes more than {MOST} bytes at {WIDTHS[-1]} pixels; draw less in it")
