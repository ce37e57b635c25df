"""What certifies: brackets rest on the files of this folder, on the pairs and on the error model
alone.
"""
