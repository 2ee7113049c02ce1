{{- /* Written by `make generated` from templates/controllers/_arguments.yaml.j2: edit that file. */}}
{{- /* Written by python -m tools.write_arguments from roost.controllers.controllers_options: edit that module. */}}
{{- define "roost.controllers_arguments" -}}
- {{ toJson (printf "%s%s" "--settings=" "/etc/roost/release/release.json") }}
{{- if eq $.root.Values.scheduler.target "deploy" }}
- {{ toJson (printf "%s%s" "--scheduler-config=" "/etc/roost/scheduler/config.yaml") }}
{{- end }}
- {{ toJson (printf "%s%s" "--release=" $.root.Release.Name) }}
- {{ toJson (printf "%s%s" "--namespace=" $.root.Release.Namespace) }}
- {{ toJson (printf "%s%s" "--lease-name=" (include "roost.object_name" (list $.root "controllers"))) }}
- {{ toJson (printf "%s%d" "--port=" (int64 (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.controllers) | fromJson).metricsPort)) }}
{{- if and (and (eq $.root.Values.admission.mode "webhook") (eq $.root.Values.webhook.certificates.mode "self")) $.root.Values.clusterResources }}
- {{ toJson (printf "%s%s" "--webhook-configuration=" (include "roost.cluster_object_name" (list $.root "webhook"))) }}
- {{ toJson (printf "%s%s" "--webhook-service=" (include "roost.object_name" (list $.root "webhook"))) }}
- {{ toJson (printf "%s%s" "--ca-secret=" (include "roost.object_name" (list $.root "webhook-ca"))) }}
- {{ toJson (printf "%s%s" "--leaf-secret=" (or $.root.Values.webhook.certificates.secretName (include "roost.object_name" (list $.root "webhook-leaf")))) }}
{{- end }}
{{- if and (and (and (eq $.root.Values.admission.mode "webhook") (eq $.root.Values.webhook.certificates.mode "self")) $.root.Values.clusterResources) $.root.Values.webhook.url }}
- {{ toJson (printf "%s%s" "--webhook-url=" $.root.Values.webhook.url) }}
{{- end }}
{{- if not $.root.Values.clusterResources }}
- --own-namespace-only
{{- end }}
- {{ toJson (printf "%s%s" "--log-level=" (include "roost.core_pod" (list $.root.Values.corePods $.root.Values.controllers) | fromJson).logLevel) }}{{- end }}
