"""The problems: losses, penalties, intercepts; their certificates with rounding counted, reductions and grids.

This room proves what is known about a solution. It holds no rule, no solver and no file.
"""

# Columns of the step table with a free intercept: both ends of the interval of the best.
INTERVAL = ("intercept_low", "intercept_high")
# Columns of a path over a level of the loss: the derivative of the objective by it, a bound on the error of that; rows
# whose form is below that of the level before.
LEVELS = ("slope", "slope_error", "crossings")
