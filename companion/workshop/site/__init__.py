"""The course as a site: pages from the executed solutions, ``published/`` and the docstrings, built with Sphinx."""
