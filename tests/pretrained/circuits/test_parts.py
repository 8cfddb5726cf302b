"""Names of parts and wires are read, written, and refused by name."""

import pytest
from refusals import refusals

from companion.core.circuits import Part
from companion.pretrained.circuits.parts import Circuit, Wire, part_name


def test_names_are_read_in_the_order_of_layers_and_written_again():
    circuit = Circuit.read(["m1", "0.2", "m0 -> 3.4 by keys", " 0.2->3.4 by  queries "])
    assert circuit.parts == (Part(0, 2), Part(0), Part(1), Part(3, 4))
    assert circuit.names == ["0.2", "m0", "m1", "3.4", "m0 -> 3.4 by keys", "0.2 -> 3.4 by queries"]
    assert circuit.wires[0] == Wire(Part(0), Part(3, 4), "keys") and part_name(Part(7)) == "m7"
    assert Circuit.read(circuit.names).wires == circuit.wires


test_wrong_names_are_refused = refusals(
    (["23"], r"'23' must be a head '16.0', an MLP 'm0' or a wire '16.0 -> 18.6 by keys'"),
    ([(23, 0)], r"\(23, 0\) is not a text"),
    (["m0", "m0"], "'m0' and 'm0' name the same part; must be named once"),
    (["16.0", "016.0"], "'16.0' and '016.0' name the same part; must be named once"),
    (["1.0 -> 2.0 by keys", "1.0->2.0 by keys"], "name the same wire; must be named once"),
    (["1.0 -> 2.0"], "'1.0 -> 2.0' must be a head .* by one of its queries, keys, values"),
    (
        ["1.0 -> 2.0 by k"],
        "'k' is not one of a head's inputs; must be a wire which ends at a head, by one of its queries, keys, values",
    ),
    (["2.1 -> 2.0 by keys"], "ends at a head, .* and comes from an earlier layer's head or MLP"),
    (["1.0 -> m2 by keys"], "ends at a head, .* and comes from an earlier layer's head or MLP"),
    of=Circuit.read,
)


def test_a_single_name_is_a_circuit_of_one():
    assert Circuit.read("1.2").names == ["1.2"]
    with pytest.raises(ValueError, match=r"layer = -1|must be a head"):
        Circuit.read(["-1.2"])
