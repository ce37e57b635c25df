"""What certifies: brackets rest on this folder, on the pairs and on the error model alone."""
