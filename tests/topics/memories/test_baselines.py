"""The nearest stored vector, against a loop."""

from companion.topics.memories.baselines import nearest
from companion.topics.memories.data import embeddings


def test_the_nearest_vector_is_found():
    V, x = embeddings(700, 9, generator=1), embeddings(600, 9, generator=2)
    assert nearest(V, x).tolist() == [max(range(700), key=lambda k, row=row: row[k]) for row in (x @ V.mT).tolist()]
