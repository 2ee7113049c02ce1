{{- /* Written by `make generated` from templates/recorder/_arguments.yaml.j2: edit that file. */}}
{{- /* Written by python -m tools.write_arguments from roost_lab.recorder.options: edit that module. */}}
{{- define "roost.recorder_arguments" -}}
- {{ toJson (printf "%s%s" "--settings=" "/etc/roost/release/release.json") }}
{{- if eq $.root.Values.scheduler.target "deploy" }}
- {{ toJson (printf "%s%s" "--scheduler-config=" "/etc/roost/scheduler/config.yaml") }}
{{- end }}
- {{ toJson (printf "%s%d" "--port=" (int64 (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.recorder) | fromJson).metricsPort)) }}
- {{ toJson (printf "%s%s" "--log-level=" (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.recorder) | fromJson).logLevel) }}{{- end }}
