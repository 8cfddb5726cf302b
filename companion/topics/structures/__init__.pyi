from companion.topics.structures import baselines as baselines
from companion.topics.structures import data as data
from companion.topics.structures import model as model
from companion.topics.structures import probes as probes
