"""The way from options and data to a finished run: read, prepare, walk, write, report; interrupt and resume.

Shell, Python functions, estimators and cross-validation come through here. No formula of a problem and no format
of a file stands here.
"""
