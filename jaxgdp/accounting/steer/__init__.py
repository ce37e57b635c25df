"""What steers: it chooses where to look. A poor choice makes a bracket wide, never wrong."""
