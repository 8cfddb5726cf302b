"""Pages into a folder, and Sphinx over them. No page asks another host for anything."""

import contextlib
import io
import shutil
import sys
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from companion.core.files import atomic_write
from companion.workshop.formulas import mathjax_folder
from companion.workshop.site import atlas, notebooks, pages
from companion.workshop.site.course import Course

HERE = Path(__file__).parent
PICTURES = "source/_static/pictures"
MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2")


def build(course: Course, out: Path) -> list[str]:
    """Make the site of ``course`` in ``out/html``; what Sphinx warned of."""
    shutil.rmtree(out, ignore_errors=True)
    source, static = out / "source", out / "source/_static"
    pictures = out / PICTURES
    pictures.mkdir(parents=True)
    for name, text in pages.every(course).items():
        atomic_write(source / name, text)
    terms = pages.mentions()
    for chapter in course.chapters:
        folder = source / "lessons" / chapter.name
        folder.mkdir(parents=True)
        for path in chapter.notebooks:
            nbformat.write(notebooks.page(chapter, path, terms, pictures), folder / path.name)
        for picture in filter(None, (chapter.picture, chapter.answer)):
            shutil.copy(picture, folder)
    shutil.copy(course.root / "companion/published/references.bib", source)
    beside = source / "beside"
    atomic_write(beside / "claims.json", atlas.as_json(course))
    shutil.copy(HERE / "claims.schema.json", beside)
    for file in sorted((HERE / "static").iterdir()):
        shutil.copy(file, static)
    _mathjax(static / "mathjax")
    warnings = io.StringIO()
    with docutils_namespace(), contextlib.redirect_stdout(sys.stderr):
        app = Sphinx(
            source,
            None,
            out / "html",
            out / "doctrees",
            "html",
            confoverrides=settings(course),
            status=None,
            warning=warnings,
            verbosity=0,
        )
        app.build()
    return [line for line in warnings.getvalue().splitlines() if line.strip()]


def _mathjax(there: Path) -> None:
    """MathJax's script and fonts, from the package that brings them."""
    for part in MATHJAX:
        if (mathjax_folder() / part).is_dir():
            shutil.copytree(mathjax_folder() / part, there / part)
        else:
            there.mkdir(parents=True, exist_ok=True)
            shutil.copy(mathjax_folder() / part, there)


def settings(course: Course) -> dict:
    """Sphinx's configuration."""
    theme = {"use_sidenotes": False, "show_navbar_depth": 1, "show_toc_level": 2, "home_page_in_toc": False}
    theme["use_download_button"] = False  # it would lead to sources, which the site does not have
    theme["navbar_persistent"] = []  # the sidebar has a search field; the theme's header would show a second one
    if course.repository:
        theme |= {"repository_url": f"https://github.com/{course.repository}", "use_repository_button": True}
    return {
        "project": "Transformers as Algorithms",
        "html_title": "Transformers as Algorithms",
        "author": "The authors of the course",
        "extensions": [
            "myst_nb",
            "sphinx.ext.autodoc",
            "sphinx.ext.viewcode",
            "sphinxcontrib.bibtex",
            "sphinx_design",
            "sphinx_copybutton",
            "companion.workshop.site.docstrings",
        ],
        "nb_execution_mode": "off",
        "nb_code_prompt_hide": "{type}",
        "myst_enable_extensions": ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"],
        "myst_heading_anchors": 4,
        "bibtex_bibfiles": ["references.bib"],
        "bibtex_default_style": "plain",
        "bibtex_reference_style": "author_year",
        "mathjax_path": "mathjax/tex-chtml.js",
        "mathjax3_config": {"options": {"enableMenu": False}},
        "autodoc_member_order": "bysource",
        "default_role": "code",
        "html_theme": "sphinx_book_theme",
        "html_theme_options": theme,
        "html_static_path": ["_static"],
        "html_extra_path": ["beside"],  # claims.json lies beside claims.html
        "html_css_files": ["site.css"],
        "html_js_files": ["site.js"],
        "html_use_index": False,
        "html_domain_indices": False,
        "html_show_sourcelink": False,
        "html_copy_source": False,
    }
