"""Which gradient, trajectory and test to sample with: what each will bring, and cost."""
