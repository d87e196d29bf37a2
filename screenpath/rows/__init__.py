"""Where the rows of a data set live: memory, shards, a cluster, behind a kernel. One contract for all.

Nothing above this room asks where rows are.
"""
