"""Adversarial configurations, drawn from a seed and a number, against exact ridge in balls.

``make fuzz MINUTES=30`` runs it; ``test_share.py`` runs a small share. CONTRIBUTING.md says more.
"""
