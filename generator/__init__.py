"""Values to manifests: load, validate, render, compile the chart, compare, import."""
