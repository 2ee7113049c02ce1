"""Nothing to write: the dashboard is chart/grafana-dashboard.json."""
