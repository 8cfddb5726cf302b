from companion.topics.graphs import baselines as baselines
from companion.topics.graphs import by_hand as by_hand
from companion.topics.graphs import data as data
from companion.topics.graphs import model as model
from companion.topics.graphs import probes as probes
