"""What is fast and small about ridgepass, as ratios measured within one run: ``make bench``."""
