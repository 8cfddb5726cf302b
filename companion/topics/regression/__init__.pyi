from companion.topics.regression import baselines as baselines
from companion.topics.regression import by_hand as by_hand
from companion.topics.regression import data as data
from companion.topics.regression import model as model
from companion.topics.regression import probes as probes
