"""The attention map without a browser: what it is made of, what it refuses, what a page without a kernel gets. In the
browser it is tried with the site (tests/workshop/cli/test_site.py) and in JupyterLab (tests/notebooks/test_browser.py).
"""

import base64
import json
import re

import numpy as np
import torch
from IPython.core.interactiveshell import InteractiveShell
from refusals import refusals

from companion.lesson.widgets.attention_map import MODULE, AttentionMap

WORDS = ["the", "cat", "</script>"]
PREVIOUS = torch.tensor([[1, 0, 0], [0.75, 0.25, 0], [0, 1, 0]])
MEAN = torch.ones(3, 3).tril() / torch.arange(1, 4)[:, None]
BOTH = torch.stack([PREVIOUS, MEAN])


def shown(made: AttentionMap) -> dict:
    """What a notebook keeps of it."""
    return InteractiveShell.instance().display_formatter.format(made)[0]


def test_one_pattern_is_one_head():
    made = AttentionMap(WORDS, PREVIOUS)
    assert (made.words, made.heads, made.moves) == (WORDS, ["head 1"], [])
    assert made.weights == [PREVIOUS.tolist()]


def test_what_it_shows_as_text():
    made = AttentionMap(WORDS[:2], np.array([[1, 0], [0.75, 0.25]]), heads=["first"], moves=[["T", "C"]])
    assert shown(made)["text/plain"].splitlines() == [
        "first: “the” looks most at “the” (100 %) and moves T",
        "first: “cat” looks most at “the” (75 %) and moves T",
    ]


def test_a_page_without_a_kernel_gets_the_module_what_it_shows_and_a_list():
    made = AttentionMap(WORDS, BOTH, heads=["previous", "mean"], moves=[WORDS, ["a", "b", "c"]])
    data = shown(made)
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == made.model_id
    page = data["text/html"]
    assert base64.b64decode(re.search('base64,([^"]+)', page)[1]).decode() == MODULE == made._esm
    state = json.loads(re.search("const state = (.*);", page)[1])
    assert state == {"words": WORDS, "weights": made.weights, "heads": ["previous", "mean"], "moves": made.moves}
    assert page.count("</script>") == 1, "a word ends no script"
    assert page.count("<li>") == 6
    assert "“&lt;/script&gt;” looks most at “cat” (100 %) and moves cat" in page


def test_the_module_asks_no_other_host():
    assert not re.search(r"https?://(?!www\.w3\.org/)|^import|import\(|fetch\(", MODULE, re.MULTILINE)


test_what_is_no_attention_is_refused = refusals(
    ({"words": ["the"], "weights": np.ones((1, 1))}, r"words = \['the'\]: must be at least two"),
    ({"weights": MEAN[:2]}, r"weights of shape \(2, 3\): must be \(3, 3\), or \(heads, 3, 3\)"),
    ({"weights": BOTH[None]}, r"weights of shape \(1, 2, 3, 3\)"),
    ({"weights": BOTH[:0]}, r"weights of shape \(0, 3, 3\)"),
    ({"weights": MEAN.mT}, r"weights: row sums from 0.333 to 1.83, .* every row must sum to 1"),
    ({"weights": MEAN * torch.nan}, "weights: row sums from nan"),
    ({"weights": torch.tensor([[2.0, -1, 0]] * 3)}, "least weight -1; every row must sum to 1, with no weight below"),
    ({"heads": ["one", "two"]}, r"heads = \['one', 'two'\]: must be 1 names"),
    ({"moves": [WORDS, WORDS]}, r"moves of \[3, 3\] texts: must be 3 for each of 1 heads"),
    ({"moves": [WORDS[:2]]}, r"moves of \[2\] texts: must be 3 for each of 1 heads"),
    of=lambda changed: AttentionMap(**{"words": WORDS, "weights": MEAN} | changed),
)
