"""The declared models, options, columns, scores and rules: all there is to know about each, once.

Declarations load no numerical library, and name what serves a model by functions that import it when called.
No formula stands here, and no file is read.
"""
