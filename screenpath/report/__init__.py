"""What people see of runs: tables on a terminal, pictures, a page for a browser.

Only reads: nothing here changes a number.
"""
