{{- /* Written by `make generated` from templates/seating/_arguments.yaml.j2: edit that file. */}}
{{- /* Written by python -m tools.write_arguments from roost.seating.seating_options: edit that module. */}}
{{- define "roost.seating_arguments" -}}
- {{ toJson (printf "%s%s" "--settings=" "/etc/roost/release/release.json") }}
- {{ toJson (printf "%s%s" "--hub-url=" $.root.Values.seating.hubUrl) }}
- {{ toJson (printf "%s%s" "--token-file=" "/etc/roost/token/token") }}
{{- if and $.root.Values.events.enabled $.root.Values.events.configMaps }}
- {{ toJson (printf "%s%s" "--bookings=" "/etc/roost/bookings/events.yaml") }}
{{- end }}
- {{ toJson (printf "%s%s" "--state=" "/state/seating.json") }}
- {{ toJson (printf "%s%d" "--grace-minutes=" (int64 $.root.Values.seating.graceMinutes)) }}
- {{ toJson (printf "%s%d" "--port=" (int64 (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.seating) | fromJson).metricsPort)) }}
- {{ toJson (printf "%s%s" "--log-level=" (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.seating) | fromJson).logLevel) }}{{- end }}
