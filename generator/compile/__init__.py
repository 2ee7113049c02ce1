"""From `templates/` to the chart's Go templates, and to Python."""
