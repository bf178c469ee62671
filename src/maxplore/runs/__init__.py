"""What is kept on disk. No file is ever trusted with code: arrays and plain JSON, and nothing else, are read."""
