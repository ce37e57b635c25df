"""The explorer: one HTML page with sliders, from a certified grid, or live on this machine.

grid   what was computed beforehand, and why a neighbour on the grid is safe
page   the page and the stops of its sliders; Vega, which draws it, is inside it
live   a server on this machine that answers for every position of the sliders
"""
