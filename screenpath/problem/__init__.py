"""The problems: losses, penalties, intercepts; their certificates with rounding counted, reductions and grids.

What is proved about a solution is proved here. No rule, no solver and no file stands here.
"""

# Columns of the step table with a free intercept: both ends of the interval of the best.
INTERVAL = ("intercept_low", "intercept_high")
