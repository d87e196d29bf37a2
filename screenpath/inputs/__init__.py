"""What commands read: training data, new data, shards and clusters, as rows and targets.

How a byte becomes a number stands in `data`; what a path does with rows in `walk`.
"""
