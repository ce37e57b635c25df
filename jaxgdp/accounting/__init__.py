"""From a mechanism to its certified curve: discretised, composed, refined until it is narrow."""
