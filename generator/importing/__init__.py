"""From zero-to-jupyterhub's and BinderHub's values to Roost's."""
