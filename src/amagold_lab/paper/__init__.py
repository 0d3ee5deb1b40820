"""Every figure and table of the paper, one small file each, run by `amagold reproduce`."""
