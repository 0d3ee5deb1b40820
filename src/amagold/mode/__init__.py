"""The mode of a target and the curvature there: where chains start, what plans predict from, what
control variates are taken about.
"""
