"""A real JupyterHub with its proxy, over fake nodes whose users' pods are processes."""
