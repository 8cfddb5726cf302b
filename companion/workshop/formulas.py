"""Where MathJax lies, which shows formulas on the site's pages and in the form grader."""

from importlib.resources import files
from pathlib import Path

import mathjax


def mathjax_folder() -> Path:
    """Return the folder with MathJax 3: ``tex-chtml.js``, its parts and fonts."""
    return Path(str(files(mathjax))) / "static/mathjax/es5"
