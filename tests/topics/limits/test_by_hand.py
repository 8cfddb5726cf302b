"""Hand-built decoders are exact over all lengths they promise, and one layer fewer is not enough."""

import pytest
import torch
import torch.nn.functional as F
from refusals import refusals

from companion.topics.limits.baselines import follow, running_products
from companion.topics.limits.by_hand import CircleDecoder, HopDecoder, LetterHopDecoder, WordDecoder, counted_parity
from companion.topics.limits.data import coins, found_hops, pointers, turns_and_flips, unlike_neighbours, words
from companion.topics.limits.probes import right_prefixes


def layers_for(length):
    return (length - 1).bit_length()


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("length", [2, 3, 5, 8, 16, 31, 32, 33])
def test_every_prefix_is_exact_with_log_many_layers_and_the_last_is_not_with_one_fewer(n, length):
    drawn = words(30, length, n, generator=length)
    right = running_products(drawn)
    tables = WordDecoder(n, length, layers_for(length))(drawn)
    assert (tables - F.one_hot(right, n)).abs().max() < 1e-12
    if layers_for(length) > 1:
        shares = right_prefixes(WordDecoder(n, length, layers_for(length) - 1)(drawn), right)
        reach = 2 ** (layers_for(length) - 1)
        assert (shares[:reach] == 1).all()
        assert (shares[reach:] < 0.75).all()


def test_all_of_s5_is_among_the_symbols_and_shorter_words_fit():
    drawn = words(60, 20, 5, generator=1)
    assert len(drawn.flatten(0, 1).unique(dim=0)) == 120
    assert torch.equal(WordDecoder(5, 32, 5)(drawn).argmax(-1), running_products(drawn))


# At 40, a weight that should be 0 is about e^-40 = 4e-18: float64 loses it beside a 1, on some processors in every sum
@pytest.mark.parametrize(("beta", "least", "most"), [(40.0, 0.0, 1e-12), (20.0, 1e-10, 1e-4), (10.0, 1e-7, 0.1)])
def test_the_error_falls_with_the_sharpness(beta, least, most):
    drawn = words(20, 32, 5, generator=2)
    off = (WordDecoder(5, 32, 5, beta=beta)(drawn) - F.one_hot(running_products(drawn), 5)).abs().max()
    assert least <= off < most


@pytest.mark.parametrize(("n", "length"), [(2, 1), (2, 9), (3, 7), (3, 64), (4, 32), (5, 20)])
def test_turns_and_flips_are_counted_in_two_layers_and_not_without_their_signs(n, length):
    turns, flips = turns_and_flips(40, length, n, generator=length)
    symbols = (turns[..., None] + flips[..., None] * torch.arange(n)) % n
    right = running_products(symbols)[..., 0].double()
    net = CircleDecoder(n, length)
    torch.testing.assert_close(net(turns, flips), right, atol=1e-9, rtol=0)
    net.decoder.blocks[0].mlp[3].weight[net.blocks["odd"]] = 0  # nobody knows how many flips there were
    assert length < 3 or n == 2 or (net(turns, flips)[:, -1] - right[:, -1]).abs().gt(0.5).double().mean() > 0.2


def test_a_shorter_word_is_counted_by_the_same_weights():
    turns, flips = turns_and_flips(20, 33, 3, generator=1)
    net = CircleDecoder(3, 33)
    torch.testing.assert_close(net(turns[:, :9], flips[:, :9]), net(turns, flips)[:, :9], atol=1e-9, rtol=0)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 8, 21, 31, 32, 50])
def test_k_hops_in_as_many_layers_as_k_has_binary_digits(k):
    maps = pointers(5, 64, generator=k)
    net = HopDecoder(64, k)
    assert len(net.decoder.blocks) == len(f"{k:b}")
    assert (net(maps) - F.one_hot(follow(maps, k), 64)).abs().max() < 1e-12


def test_maps_that_are_no_permutations_are_followed_too():
    maps = torch.randint(16, (5, 16), generator=torch.Generator().manual_seed(1))
    assert torch.equal(HopDecoder(16, 11)(maps).argmax(-1), follow(maps, 11))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 8, 21, 31])
@pytest.mark.parametrize(("length", "alphabet"), [(2, 2), (256, 4), (90, 3), (40, 7)])
def test_hops_along_pointers_that_are_found_take_one_layer_more(length, alphabet, k):
    letters = unlike_neighbours(3, length, alphabet, generator=k)
    ends = found_hops(letters, torch.full((3,), k), alphabet)[1][:, 1:]
    net = LetterHopDecoder(length, alphabet, k)
    assert len(net.decoder.blocks) == 1 + len(f"{k:b}")
    assert net.blocks.width == LetterHopDecoder(9, alphabet, k).blocks.width
    assert (net(letters) - F.one_hot(ends, alphabet + 1)).abs().max() < 1e-12
    net.decoder.blocks = net.decoder.blocks[:-1]
    there = ends < alphabet
    assert length < 256 or (net(letters).argmax(-1) == ends)[there].double().mean() < 2 / 3


def test_letters_that_stand_side_by_side_are_hopped_from_too():
    letters = torch.randint(3, (5, 60), generator=torch.Generator().manual_seed(1))
    ends = found_hops(letters, torch.full((5,), 6), 3)[1][:, 1:]
    assert torch.equal(LetterHopDecoder(60, 3, 6)(letters).argmax(-1), ends)


def test_counting_needs_as_many_digits_as_the_count_and_doubling_does_not():
    bits = coins(300, 1024, generator=1)
    right = bits.sum(1) % 2
    assert (counted_parity(bits[:, :256], torch.bfloat16) == bits[:, :256].sum(1) % 2).all()
    assert (counted_parity(bits, torch.bfloat16).round() % 2 == right).double().mean() < 0.65
    assert (counted_parity(bits, torch.float32) == right).all()
    drawn = words(20, 64, 2, generator=2)
    assert torch.equal(WordDecoder(2, 64, 6, dtype=torch.bfloat16)(drawn).argmax(-1), running_products(drawn))


@pytest.mark.parametrize("length", [1, 2, 9, 64])
def test_counting_gives_the_parity(length):
    bits = coins(50, length, generator=length)
    torch.testing.assert_close(counted_parity(bits), (bits.sum(1) % 2).double(), atol=1e-10, rtol=0)


test_bad_arguments_are_named = refusals(
    (lambda: WordDecoder(0, 4, 2), "points = 0"),
    (lambda: WordDecoder(3, 4, 0), "layers = 0"),
    (lambda: WordDecoder(3, 4, 2, beta=0.0), "beta = 0.0"),
    (lambda: WordDecoder(3, 4, 2)(words(1, 5, 3, generator=0)), r"must be \(batch, at most 4 symbols, 3 points\)"),
    (lambda: WordDecoder(3, 4, 2)(words(1, 4, 2, generator=0)), r"must be \(batch, at most 4 symbols, 3 points\)"),
    (lambda: WordDecoder(3, 4, 2)(words(1, 4, 3, generator=0) + 1), "words: 3 is out of range"),
    (lambda: CircleDecoder(1, 4), "n = 1"),
    (lambda: CircleDecoder(3, 0), "length = 0"),
    (lambda: CircleDecoder(3, 4)(*turns_and_flips(1, 5, 3, generator=0)), "at most 4 symbols"),
    (lambda: CircleDecoder(3, 9)(*turns_and_flips(9, 9, 5, generator=0)), "turns: 4 is out of range"),
    (lambda: HopDecoder(4, 0), "hops = 0"),
    (lambda: HopDecoder(4, 2)(pointers(1, 5, generator=0)), "must have 4 places"),
    (lambda: HopDecoder(4, 2)(pointers(1, 4, generator=0) - 1), "pointers: -1 is out of range"),
    (lambda: LetterHopDecoder(4, 0, 1), "alphabet = 0"),
    (lambda: LetterHopDecoder(4, 2, 1, beta=-1.0), "beta = -1.0"),
    (lambda: LetterHopDecoder(4, 2, 1)(coins(1, 5, generator=0)), "must be 4"),
    (lambda: LetterHopDecoder(4, 2, 1)(coins(1, 4, generator=0) + 1), "letters: 2 is out of range"),
)
