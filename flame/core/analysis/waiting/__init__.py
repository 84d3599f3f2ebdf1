"""Charge the idle time of GPUs to what the thread did that launched what ran next.

May import: attribution, model, projection, timeline.
"""
