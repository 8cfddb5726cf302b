from companion.topics.multihead import baselines as baselines
from companion.topics.multihead import data as data
from companion.topics.multihead import model as model
