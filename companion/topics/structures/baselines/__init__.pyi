from companion.topics.structures.baselines import hashing as hashing
from companion.topics.structures.baselines import search as search
from companion.topics.structures.baselines import sketches as sketches
from companion.topics.structures.baselines import trees as trees
