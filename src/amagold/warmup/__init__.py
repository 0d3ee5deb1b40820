"""What happens before sampling: the mode, its curvature, dispersed starts, and a plan."""
