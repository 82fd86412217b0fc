"""How the site is built: ``make docs``. Warnings are errors, and nothing is fetched to build or to read it."""

import sys
from pathlib import Path

import pathlines

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
pathlines.enable_float64()

project = "Pathlines"
author = "The Pathlines developers"
copyright = "2026, the Pathlines developers"
version = release = pathlines.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "claim_pages",
    "api_pages",
    "plain_docstrings",
    "verbs",
]
exclude_patterns = ["_build", "extend/skeletons"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3
smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Pathlines"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
