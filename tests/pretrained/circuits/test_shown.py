"""A picture has what the circuit has, and says it."""

from companion.pretrained.circuits import shown
from companion.pretrained.circuits.parts import Circuit


def test_parts_and_wires_are_drawn_and_told(monkeypatch):
    made, figure = [], shown.Figure
    monkeypatch.setattr(shown, "Figure", lambda **sizes: made.append(figure(**sizes)) or made[-1])
    circuit = Circuit.read(["m0", "0.1 -> 3.2 by keys", "m1 -> 3.2 by values"])
    drawn = shown.circuit_picture(circuit, layers=4, heads=4, title="a circuit")
    [[ax]] = [each.axes for each in made]
    assert {text.get_text() for text in ax.texts} >= {"m0", "0.1", "3.2", "m1"}
    assert [text.get_text() for text in made[0].legends[0].get_texts()] == ["by keys", "by values"]
    assert drawn.alt == "a circuit: 0.1, m0, m1, 3.2, 0.1 -> 3.2 by keys, m1 -> 3.2 by values"
    shown.circuit_picture(Circuit.read(["0.0"]), layers=1, heads=1)
    assert not made[1].legends
