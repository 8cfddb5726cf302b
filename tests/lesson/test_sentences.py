"""What near misses say: every sentence of every row is one of what an answer does, with a name for each part; and
answers that readers put to the checks, whose reasons were false or no sentences, get none of these.
"""

import dataclasses
import re

import pytest
import torch
from wrong_answers.cases import CASES, EXERCISES, cell
from wrong_answers.test_wrong_answers import compiled

from companion.lesson.exercise import Mistake
from companion.lesson.near_misses import families
from companion.lesson.near_misses.edits import edits
from companion.lesson.near_misses.table import near_miss_table
from companion.lesson.summit import Summit

KEYS = {name: (topic, name) for topic, name in CASES if not isinstance(EXERCISES[topic, name], Summit)}
NO_CLAUSE = re.compile(r"(this|it|they|there|that) |one too (near|far)|the order is|[^:]*\bmust\b|[^:]*[{}|]")
NO_NAME = re.compile(
    r"\bthis step\b|\bthe counter\b|\ba value on the way\b|minus minus|\brunning [a-z]\b|running value"
)


def told(name, source):
    """What is said of a wrong answer where no mistake is listed."""
    listed = EXERCISES[KEYS[name]]
    bare, family = dataclasses.replace(listed, mistakes={}), families.family(listed)
    assert family.singles
    families._families[id(bare)] = family  # its near misses are made
    try:
        with pytest.raises(Mistake) as mistake:
            bare.check(compiled(bare, cell(listed, source)))
    finally:
        del families._families[id(bare)]
    return str(mistake.value).removeprefix(f"{name}: ")


@pytest.mark.types_unchecked
@pytest.mark.parametrize("name", KEYS)
def test_every_sentence_says_what_an_answer_does(name):
    """Also after 'the values are those that come out when', and whatever variables a learner has."""
    family = families.family(EXERCISES[KEYS[name]])
    own = family.words()
    for words in (own, family.words({*own.defined, *own.looped})):
        for edit in edits(family.context()):
            said = edit.sentence(words)
            clause = said.partition(":")[0]
            assert not NO_CLAUSE.match(clause), said
            assert not NO_NAME.search(said), said
            assert not re.search(r"(what is computed from [^,]+) (and|or) \1( |$)(?!and)", clause), said


def test_what_is_expanded_is_copied():
    """Of a tensor whose entries share their place in memory, torch.median reads what nobody wrote."""
    for block in near_miss_table():
        for row in block.rows:
            assert row.text.count(".clone()") == len(re.findall(r"\bexpand(?:_as)?\(", row.text)), row.text


@pytest.mark.types_unchecked
@pytest.mark.parametrize("name", ["constant_or_simple", "chance_right"])
def test_the_values_of_near_misses_are_the_same_each_time(name):
    family = families.family(EXERCISES[KEYS[name]])
    again = families.Family(EXERCISES[KEYS[name]].answer, EXERCISES[KEYS[name]]._drawn, family.tolerance)
    assert [miss.mistake for miss in family.singles] == [miss.mistake for miss in again.singles]
    assert all(
        torch.equal(one.value.nan_to_num(7.0), two.value.nan_to_num(7.0))
        for one, two in zip(family.singles, again.singles, strict=True)
    )


# the exercise, an answer, what must not be said of it, what must (None: what was measured, and no reason)
QUOTED = [
    (
        "conjugate_gradient",
        """
w, residual, direction = torch.zeros_like(b), b, b
for _ in range(steps):
    image = S @ direction
    length = (residual @ residual) / (direction @ image)
    w = w + length * direction
    new = residual - length * image
    direction = new + (new @ new) / (residual @ residual) * direction
return w""",
        "subtracted",
        "residual is not changed",
    ),
    (
        "descent_circuits",
        """
query_key, value_output = torch.zeros(d + 1, d + 1), torch.zeros(d + 1, d + 1)
query_key[:d, :d] = torch.eye(d)
value_output[:d, :d] = (1 - gamma) * length * torch.eye(d)
value_output[d, d] = -lr * length
return torch.stack([query_key, value_output])""",
        "counted",
        "1 minus gamma stands where minus gamma is due",
    ),
    (
        "excess_over_random",
        """
lost = (control == 0).double().mean() - (waves == 0).double().mean()
near = [(off[off != 0].abs() <= 2).double().mean() for off in (waves, control)]
return torch.stack([lost, near[0] - near[1]])""",
        "square",
        None,
    ),
    (
        "signal",
        """
told = torch.nn.functional.one_hot(answer, answers).to(counts)
return ((told - told.mean(0)).mT @ counts / len(counts)).norm(dim=0)""",
        "counts is centred",
        None,
    ),
    (
        "shared_pattern",
        """
first = torch.linalg.lstsq((Z[:-1] - Z[-1]).mT, (y - Z[-1])[:, None]).solution[:, 0]
return torch.cat([first, torch.zeros(1, dtype=first.dtype)])""",
        "length 1",
        "the last entry is 0, not what the others leave of 1",
    ),
    (
        "explained",
        "return (C.mT @ torch.linalg.inv(G) @ C).sum()",
        "summed",
        "all entries of a matrix product are added up, where its diagonal alone is due",
    ),
    (
        "weight_by_degree",
        """
n = len(values).bit_length() - 1
numbers = torch.arange(2**n)
degree = (numbers[:, None] >> torch.arange(n) & 1).sum(-1)
return torch.zeros(n + 1, dtype=values.dtype).index_add(0, degree, values.square() / len(values))""",
        "mean",
        None,
    ),
    (
        "constant_or_simple",
        """
ones = (logits > 0).to(logits.dtype).mean(-1)
changed = ((others > 0) != (logits > 0)[..., None]).to(logits.dtype).mean((1, 2))
return torch.stack([torch.minimum(ones, 1 - ones), changed, changed])""",
        "replaced by its mean",
        "",
    ),
    (
        "steadied",
        """
fit = -logits.log_softmax(-1)[:, labels].mean()
return (1 - share) * fit + share * (noisy - logits).square().mean()""",
        "replaced by its mean",
        None,
    ),
    (
        "in_steps",
        """
from companion.topics.limits.exercises import prefix_doubling
take, state, written = 2**layers - 1, words[0], []
for start in range(1, len(words), take):
    state = prefix_doubling.answer(torch.cat([state[None], words[start : start + take]]), layers)[0]
    written.append(state)
return torch.stack(written)""",
        "too small",
        "the index 0 stands where -1 belongs",
    ),
    (
        "miscalibration",
        """
_, bins = value.unique(return_inverse=True)
return torch.zeros_like(g).index_add(0, bins, g - p).clamp_min(0).sum() / 2""",
        "twice",
        "half",
    ),
    (
        "validity_bound",
        """
E, V = false.sum(), (~false).sum()
says_valid = g > 1 / E
missed = p[~says_valid].sum()
fooled = (says_valid & false).sum() / E
return missed + fooled""",
        "picked part",
        "",
    ),
    (
        "error_signature",
        """
wrong = off[off != 0]
near = ((wrong.abs() <= 2) & (wrong % 10 == 0)).double().mean()
return torch.stack([near, (wrong % 10 == 0).double().mean(), (off == 0).double().mean()])""",
        "smallest entry",
        "",
    ),
    (
        "error_signature",
        """
wrong = off[off != 0]
near, tens = (wrong.abs() <= 2).double().mean(), (wrong % 10 == 0).double().mean()
return torch.stack([(off == 0).double().mean(), near, tens])""",
        "shifted",
        "stands first, not last",
    ),
    (
        "numbers_carried",
        """
values = torch.linalg.svdvals(changes[seen - 1, :, seen:].flatten(1))
return (values > 1e-6 * values[0]).sum()""",
        "seen is not used",
        "along its first axis only the last of what should be kept of changes is kept",
    ),
    (
        "numbers_carried",
        "return (changes[:seen, :, seen:].flatten(0, 1).flatten(1).abs().sum(1) > 0).sum()",
        "all of changes",
        None,
    ),
    (
        "at_equal_accuracy",
        """
reached = accuracy >= target
found = measured.gather(1, reached.int().argmax(-1)[:, None])
return torch.where(reached.any(-1), found, torch.inf)""",
        "The reason",
        "(6,) and (6, 1) broadcast to (6, 6)",
    ),
    (
        "prefix_doubling",
        """
for layer in range(layers):
    start = torch.arange(words.shape[-1]).expand(2**layer, -1)
    words = words.gather(1, torch.cat([start, words])[-len(words):])
return words""",
        "exchanged",
        "meets itself",
    ),
    (
        "estimate",
        """
mean = (after != before[:, None]).double().mean()
half = (torch.tensor(2 / delta).log() / 2 * len(before)).sqrt()
return torch.stack([mean - half, mean, mean + half]).clamp(0, 1)""",
        "does not use",
        "",
    ),
    (
        "rls_update",
        "return P - (P @ x) * (P @ x) / (1 + x @ (P @ x))",
        "and the product of P and x",
        "",
    ),
    (
        "lstm_step",
        """
i, f, g, o = (W @ x + U @ h + b).chunk(4)
c = f.sigmoid() * c + i.sigmoid() * g
h = o.sigmoid() * c.tanh()
return torch.stack([h, c])""",
        "this step",
        "the tanh of g is missing",
    ),
    (
        "lstm_step",
        """
i, f, g, o = (W @ x + U @ h + b).chunk(4)
c = f.sigmoid() * c + i.sigmoid() * g.tanh()
h = o.sigmoid() * c.tanh()
return torch.stack([h, h])""",
        "running",
        "h is used where c belongs",
    ),
    ("recalled", "return (u @ W.mT @ v.mT).argmax() == torch.arange(len(u))", "every entry is 0", ""),
]  # fmt: skip
REASONS = re.compile(r"the values are those|does not use|the answer does not change|The reason")


@pytest.mark.types_unchecked
@pytest.mark.parametrize("name, source, wrong, right", QUOTED, ids=[f"{name}-{wrong}" for name, _, wrong, _ in QUOTED])
def test_an_answer_gets_no_false_reason_that_a_reader_has_quoted(name, source, wrong, right):
    said = told(name, source.strip("\n"))
    assert wrong not in said
    if right is None:
        assert not REASONS.search(said) and "wrong value" in said
    else:
        assert right in said
    assert told(name, source.strip("\n")) == said, "the same each time"
