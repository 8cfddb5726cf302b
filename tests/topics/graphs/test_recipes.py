"""Every arm draws what it promises, and the shipped decoders know their own graphs."""

import numpy as np
import pytest
import torch

from companion.core.checkpoints import shipped
from companion.core.measuring import measured_table
from companion.core.recipe import recipe
from companion.topics.graphs.data import connected, erdos_renyi, within
from companion.topics.graphs.measured import clique_margins
from companion.topics.graphs.probes import exact_match
from companion.topics.graphs.recipes import ARMS, BEYOND, SEEDS


def test_every_arm_has_its_share_beyond_capacity_and_right_answers():
    graphs, answers = recipe("graphs-channels").draw(200, torch.Generator().manual_seed(1))
    assert graphs.shape == (200, SEEDS * len(ARMS), 8, 8)
    assert torch.equal(connected(graphs.flatten(0, 1)), answers.flatten(0, 1) > 0)
    beyond = (~within(graphs.flatten(0, 1), 3)).double().view(200, len(ARMS), SEEDS).mean((0, 2))
    beyond = dict(zip(ARMS, beyond.tolist(), strict=True))
    for arm, share in BEYOND.items():
        assert beyond[arm] == pytest.approx(share, abs=0.03)
    assert beyond["within"] == 0 and 0.15 < beyond["matched"] < beyond["all"] < 0.4
    base = answers.view(200, len(ARMS), SEEDS, 64).mean((0, 2, 3))
    base = dict(zip(ARMS, base.tolist(), strict=True))
    assert base["matched"] == pytest.approx(base["within"], abs=0.03) and base["all"] > base["within"] + 0.05


@pytest.mark.parametrize("arm", ["within", "all"])
def test_the_shipped_decoders_know_their_own_graphs(arm):
    graphs = erdos_renyi(1000, 8, 0.05, 0.4, generator=2)
    graphs = graphs[within(graphs, 3)]
    for seed in range(SEEDS):
        with torch.no_grad():
            assert exact_match(shipped(f"graphs-standard-{arm}", seed=seed)[0](graphs), connected(graphs)) > 0.8


def test_side_by_side_or_alone_a_smoke_run_learns():
    for name in ("graphs-channels", "graphs-standard-all"):
        _, history = recipe(name, "smoke").train(seed=0, device="cpu")
        assert history.losses[-1] < history.losses[0]


def test_two_cliques_are_watched_while_a_longer_run_goes_on():
    table = measured_table("graphs-two-cliques-by-steps")
    stored = table.grid("step", "arm", "run", of="logit")
    assert table.values("step") == [*range(0, 10_000, 100)] and stored.shape == (100, 3, SEEDS)
    first = clique_margins(1, seed=2)
    assert first.shape == (1, 3 * SEEDS)
    np.testing.assert_allclose(first[0], stored[0].flatten(), rtol=1e-3)


def test_what_the_thirty_models_solve_hangs_on_their_graphs_and_on_their_steps():
    table = measured_table("graphs-eight-by-budget")
    solved = {
        shape: {arm: table.where(arm=arm).grid("times", "seed", "run", of=shape).mean((1, 2)).tolist() for arm in ARMS}
        for shape in (
            *("two_chains", "two_cycles", "two_cliques", "clique_and_node"),
            *("within_without_degrees", "without_degrees_and_bias", "clique_and_node_without_readout"),
        )
    }
    few = [arm for arm, each in solved["two_cycles"].items() if each == [1, 1, 1]]
    assert few == ["within", "5%"] and not any(sum(solved["two_cycles"][arm]) for arm in ARMS if arm not in few)
    assert solved["two_chains"]["60%"][0] == 0 and all(each[-1] == 1 for each in solved["two_chains"].values())
    assert [arm for arm in ARMS if solved["two_cliques"][arm][-1] > 0] == few
    assert solved["clique_and_node"]["within"][-1] < 0.5 and solved["clique_and_node"]["60%"][-1] == 1  # the reverse
    unread = {arm: each[-1] for arm, each in solved["clique_and_node_without_readout"].items()}
    assert unread["within"] == 1 and unread["60%"] == unread["all"] == 0  # and back
    assert [arm for arm in ARMS if min(solved["within_without_degrees"][arm]) < 0.99] == ["60%", "all"]
    assert min(min(each) for each in solved["without_degrees_and_bias"].values()) >= 0.99


def test_the_loss_without_answers_out_of_reach_solves_what_the_control_does_not():
    table = measured_table("graphs-left-out-by-budget").where(times=10)
    for graphs in ("two_cycles", "two_cliques"):
        left_out = dict(zip(table.values("left_out"), table.grid("left_out", "seed", "run", of=graphs), strict=True))
        assert left_out["out of reach"].min() == 1 and left_out["random"].max() == 0
    assert sum(table.where(left_out="out of reach").columns["clique_and_node"]) >= 0.8 * 3 * SEEDS  # a few count


@pytest.mark.weekly
def test_a_longer_run_ends_with_the_signs_that_are_stored():
    stored = measured_table("graphs-two-cliques-by-steps").grid("step", "arm", "run", of="logit")
    again = clique_margins(10_000, seed=2).view(stored.shape)
    right = [(logits[70:] < 0).mean((0, 2)) for logits in (stored, again.numpy())]
    assert right[0][0] == 1 and right[0][2] == 0
    np.testing.assert_allclose(*right, atol=0.1)
