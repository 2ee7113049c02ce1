"""What a release does: every step of the workflows is a script or a program of this folder."""
