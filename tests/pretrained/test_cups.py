"""Games with five cups, and that a model which keeps what it has read guesses as one that reads all of it again."""

import re

import pytest
import torch
from tiny_llama import save_tiny_llama

from companion.pretrained import cups
from companion.pretrained.language import LanguageModel, by_transformers


def test_a_ball_moves_with_its_cup_and_with_no_other():
    game = cups.Game(2, [(0, 1), (2, 4), (4, 3), (2, 0)])
    assert game.places() == [2, 2, 4, 3, 3]
    assert game.places([2, 1]) == [2, 2, 4]
    drawn = cups.cup_games(400, 2, generator=torch.Generator().manual_seed(0))
    assert {game.start for game in drawn} == set(range(5))
    assert {swap for game in drawn for swap in game.swaps} == {(a, b) for a in range(5) for b in range(5) if a != b}
    stay = cups.cup_games(40, 3, untouched=True, generator=torch.Generator().manual_seed(0))
    assert all(game.places() == [game.start] * 4 for game in stay)


def played_in_whole_runs(model, encode, asked: str, game: cups.Game, before: str) -> list[int]:
    """The guess after each swap, by the course's own model, which reads all of the text for each."""
    text, guesses = f"{before}Ball in {cups.CUPS[game.start]}.", []
    for (a, b), place in zip(game.swaps, game.places()[1:], strict=True):
        text += f" Swap {cups.CUPS[a]} and {cups.CUPS[b]}"
        asks = ": ball in" if asked.startswith("steps") else ". Now: ball in"
        logits = model(torch.tensor([encode(text + asks)]), only_last=True)[0, -1]
        guesses.append(max(range(5), key=lambda cup, logits=logits: logits[encode(f" {cups.CUPS[cup]}")[0]].item()))
        said = {"steps it writes": guesses[-1], "steps written rightly": place}.get(asked)
        text += "." if said is None else f"{asks} {cups.CUPS[said]}."
    return guesses


@pytest.mark.parametrize("asked", cups.FOLLOWED)
def test_cups_are_followed_as_in_whole_runs(asked, tmp_path):
    folder, words = save_tiny_llama(tmp_path / "llama", max_position_embeddings=128), {}

    def encode(text: str) -> list[int]:
        return [words.setdefault(word, len(words)) for word in re.findall(r" ?\w+|[.:\n]", text)]

    drawn, examples = (cups.cup_games(n, k, generator=torch.Generator().manual_seed(n)) for n, k in ((3, 4), (6, 2)))
    rows = cups.play(by_transformers(folder).float(), encode, asked, drawn, examples, (1, 4))
    assert [row["swaps"] for row in rows] == [1, 1, 1, 4, 4, 4]
    whole = LanguageModel(folder)
    for row, game in enumerate(drawn):
        before = ""
        for example in examples[2 * row : 2 * row + 2]:
            names, places = cups.CUPS, example.places()
            swaps = [f" Swap {names[a]} and {names[b]}" for a, b in example.swaps]
            ends = [f": ball in {names[place]}." if asked.startswith("steps") else "." for place in places[1:]]
            before += f"Ball in {names[places[0]]}." + "".join(map(str.__add__, swaps, ends))
            before += "\n" if asked.startswith("steps") else f" Now: ball in {names[places[-1]]}.\n"
        guesses, truth = played_in_whole_runs(whole, encode, asked, game, before), game.places()
        for done, found in ((1, rows[row]), (4, rows[3 + row])):
            guess, told = guesses[done - 1], game.start
            if asked.startswith("steps") and done > 1:
                told = guesses[done - 2] if asked == "steps it writes" else truth[done - 1]
            assert found["right"] == (guess == truth[done]) and found["told"] == (guess == told)
            assert found["named"] == (guess in game.swaps[done - 1])
            assert found["moved"] == (truth[done] != truth[done - 1]) and found["stays"] == (truth[done] == game.start)
