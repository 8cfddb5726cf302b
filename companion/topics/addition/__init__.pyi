from companion.topics.addition import baselines as baselines
from companion.topics.addition import data as data
from companion.topics.addition import fourier as fourier
from companion.topics.addition import model as model
from companion.topics.addition import probes as probes
