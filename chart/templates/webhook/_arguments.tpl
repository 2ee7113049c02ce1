{{- /* Written by `make generated` from templates/webhook/_arguments.yaml.j2: edit that file. */}}
{{- /* Written by python -m tools.write_arguments from webhook.webhook_options: edit that module. */}}
{{- define "roost.webhook_arguments" -}}
- {{ toJson (printf "%s%s" "--settings=" "/etc/roost/release/release.json") }}
- {{ toJson (printf "%s%s" "--release=" $.root.Release.Name) }}
- {{ toJson (printf "%s%s" "--namespace=" $.root.Release.Namespace) }}
- {{ toJson (printf "%s%d" "--port=" (int64 $.root.Values.webhook.port)) }}
- {{ toJson (printf "%s%d" "--metrics-port=" (int64 (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.webhook) | fromJson).metricsPort)) }}
- {{ toJson (printf "%s%s" "--certificate-folder=" "/etc/roost/certificate") }}
{{- if $.root.Values.webhook.clientCA.secretName }}
- {{ toJson (printf "%s%s" "--client-ca=" "/etc/roost/client-ca/ca.crt") }}
{{- end }}
{{- if and $.root.Values.webhook.clientCA.secretName $.root.Values.webhook.clientCA.commonName }}
- {{ toJson (printf "%s%s" "--client-name=" $.root.Values.webhook.clientCA.commonName) }}
{{- end }}
- {{ toJson (printf "%s%s" "--log-level=" (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.webhook) | fromJson).logLevel) }}{{- end }}
