"""What every topic stands on: the decoder and its hooks, the LSTM, blocks of explicit weights, readouts, training,
checkpoints.
"""
