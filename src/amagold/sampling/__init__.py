"""One call from a posterior to results: plan, warm-up, draws, store, resume, advice."""
