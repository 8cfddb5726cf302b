from companion.topics.bigrams import baselines as baselines
from companion.topics.bigrams import by_hand as by_hand
from companion.topics.bigrams import data as data
from companion.topics.bigrams import model as model
from companion.topics.bigrams import probes as probes
