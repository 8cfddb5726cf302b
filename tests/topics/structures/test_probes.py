"""The best point so far, and the distances between places, against loops; components against scikit-learn's."""

import numpy as np
import pytest
import torch
from refusals import refusals
from sklearn.decomposition import PCA

from companion.topics.structures.probes import banding, best_so_far, place_distances, principal_components


def test_best_so_far_is_what_a_loop_says():
    generator = torch.Generator().manual_seed(5)
    distances = torch.randint(6, (200, 9), generator=generator).float()  # with ties
    found = torch.randint(-1, 9, (200, 4), generator=generator)
    expected = []
    for places, row in zip(found.tolist(), distances.tolist(), strict=True):
        seen = [[row[place] for place in places[: i + 1] if place >= 0] for i in range(4)]
        expected.append([bool(values) and min(values) == min(row) for values in seen])
    assert best_so_far(found, distances).tolist() == expected
    assert 0 < torch.tensor(expected).float().mean() < 1


def test_an_extra_slot_is_no_point():
    distances = torch.tensor([[3.0, 2.0, 1.0]])  # the last one is nearest: an index of -1 must not count as it
    assert best_so_far(torch.tensor([[-1, 0, 2, -1]]), distances).tolist() == [[False, False, True, True]]


test_a_place_that_is_no_point_is_refused = refusals(
    (-2, "found: has the entry -2; must be a point, 0 to n - 1 = 2, or -1 for none"),
    (3, "found: has the entry 3; must be a point"),
    of=lambda place: best_so_far(torch.tensor([[0, place]]), torch.ones(1, 3)),
)


def test_distances_between_places_are_what_a_loop_says():
    values = torch.randn(7, 5, 2, generator=torch.Generator().manual_seed(6))
    views = place_distances(values)
    assert views.shape == (3, 5, 5)
    for k in range(5):
        for other in range(5):
            apart = values[:, k] - values[:, other]
            expected = [*apart.abs().mean(0), apart.norm(dim=1).mean()]
            torch.testing.assert_close(views[:, k, other], torch.stack(expected), rtol=1e-3, atol=1e-3)


def test_sorted_places_lie_in_bands():
    values = torch.rand(500, 9, 1, generator=torch.Generator().manual_seed(7)).sort(1).values
    along, euclid = place_distances(values)
    torch.testing.assert_close(along, euclid)
    for k in range(9):
        assert (along[k, k:].diff() > 0).all()


def test_banding_is_a_correlation_over_pairs_of_places():
    view = torch.rand(6, 6, generator=torch.Generator().manual_seed(8))
    pairs = [(other - k, view[k, other].item()) for k in range(6) for other in range(k + 1, 6)]
    assert banding(view) == pytest.approx(np.corrcoef(np.array(pairs).T)[0, 1], rel=1e-4)
    places = torch.arange(6.0)
    assert banding((places[:, None] - places).abs()) == pytest.approx(1)


def test_principal_components_are_scikit_learns():
    rows = torch.randn(9, 4, generator=torch.Generator().manual_seed(9)) * torch.tensor([3.0, 2, 1, 0.5]) + 5
    shares, components = principal_components(rows)
    expected = PCA().fit(rows.numpy())
    np.testing.assert_allclose(shares, expected.explained_variance_ratio_, rtol=1e-3)
    np.testing.assert_allclose(abs(components.numpy().T @ expected.components_.T), np.eye(4), atol=1e-3)
