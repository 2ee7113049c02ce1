"""The image gate: which node holds which image, and to which nodes users may go meanwhile."""
