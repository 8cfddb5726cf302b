from companion.topics.sensitivity import baselines as baselines
from companion.topics.sensitivity import data as data
from companion.topics.sensitivity import model as model
from companion.topics.sensitivity import probes as probes
