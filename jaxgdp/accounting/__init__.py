"""From a mechanism to its certified curve: loss → window → discretise → compose → curve, refined
until it is narrow enough.
"""
