{{- /* Written by `make generated` from templates/_macros.yaml.j2: edit that file. */}}
{{- /* Macros for several components. Those of a single component are beside its templates, in files that begin with an underscore.
   The chart compiler requires that a macro begins and ends with text, and that values are printed through to_json. */}}
{{- /* metadata of an object in the release's namespace. `annotations` are added to values.commonAnnotations. */}}
{{- define "roost.metadata" -}}
{{ include "roost.labelled_metadata" (dict "root" $.root "name" $.name "component" $.component "annotations" $.annotations "labels" (dict)) }}{{- end }}
{{- /* The same with labels that take precedence over Roost's own: those by which Prometheus or Grafana select objects. */}}
{{- define "roost.labelled_metadata" -}}
namespace: {{ toJson $.root.Release.Namespace }}
{{ include "roost.own_metadata" (dict "root" $.root "name" $.name "component" $.component "annotations" $.annotations "labels" $.labels) }}{{- end }}
{{- /* metadata of a cluster-scoped object. */}}
{{- define "roost.cluster_metadata" -}}
{{ include "roost.own_metadata" (dict "root" $.root "name" $.name "component" $.component "annotations" $.annotations "labels" (dict)) }}{{- end }}
{{- /* What all metadata has, for the three above. */}}
{{- define "roost.own_metadata" -}}
name: {{ toJson $.name }}
{{- $all_annotations := include "roost.merge" (list $.root.Values.commonAnnotations $.annotations) | fromJson }}
{{- if $all_annotations }}
annotations: {{ toJson $all_annotations }}
{{- end }}
labels: {{ toJson (include "roost.merge" (list $.root.Values.commonLabels (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" $.component "app.kubernetes.io/managed-by" "roost" "app.kubernetes.io/part-of" "roost") $.labels) | fromJson) }}{{- end }}
{{- /* Selector of a component's pods. Selectors are immutable, so this must not change between versions. */}}
{{- define "roost.selector" -}}
{{ toJson (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" $.component) }}{{- end }}
{{- /* Labels of a component's pods. Those of the selector come last, to take precedence over the operator's. */}}
{{- define "roost.pod_labels" -}}
{{ toJson (include "roost.merge" (list $.root.Values.commonLabels $.labels (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" $.component "app.kubernetes.io/part-of" "roost")) | fromJson) }}{{- end }}
{{- /* The part of a pod's spec that Roost's own programs share, but for `spread`, which Deployments alone have. `core`: `corePods` with the component's overrides. `has_token`: whether the program talks to the API server. */}}
{{- define "roost.core_pod_spec" -}}
serviceAccountName: {{ toJson (include "roost.object_name" (list $.root $.component)) }}
automountServiceAccountToken: {{ toJson $.has_token }}
enableServiceLinks: false
{{- if $.core.priorityClassName }}
priorityClassName: {{ toJson $.core.priorityClassName }}
{{- end }}
{{- if $.core.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- if $.root.Values.imagePullSecrets }}
imagePullSecrets: {{ include "roost.pull_secrets" (dict "root" $.root) }}
{{- end }}
nodeSelector: {{ toJson (include "roost.merge" (list (dict "kubernetes.io/os" "linux") $.core.nodeSelector) | fromJson) }}
{{- if $.core.tolerations }}
tolerations: {{ toJson $.core.tolerations }}
{{- end }}
{{- if $.core.affinity }}
affinity: {{ toJson $.core.affinity }}
{{- end }}
securityContext: {{ toJson $.root.Values.podSecurityContext }}{{- end }}
{{- /* Pull secrets: names in the values, objects in a pod. */}}
{{- define "roost.pull_secrets" -}}
[{{ range $_, $secret := include "roost.secret_names" (list $.root $.root.Values.imagePullSecrets) | fromJsonArray }}{"name": {{ toJson $secret }}},{{ end }}]{{- end }}
{{- /* Requests and limits of a container, each only if it isn't empty. */}}
{{- define "roost.container_resources" -}}
{ {{ if $.resources.requests }}"requests": {{ toJson $.resources.requests }}, {{ end }}{{ if $.resources.limits }}"limits": {{ toJson $.resources.limits }}{{ end }}}{{- end }}
{{- /* Annotations of an alert: its sentence, and its runbook where the values say where runbooks are. */}}
{{- define "roost.alert_annotations" -}}
annotations:
{{- if contains "://" $.root.Values.monitoring.prometheusRule.runbooks }}
  runbook_url: {{ toJson $.runbook }}
{{- end }}
  summary: {{ toJson $.summary }}{{- end }}
{{- /* Topology spread: prefer different nodes and zones, but never wait for them. */}}
{{- define "roost.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: {matchLabels: {{ include "roost.selector" (dict "root" $.root "component" $.component) }} }
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: {matchLabels: {{ include "roost.selector" (dict "root" $.root "component" $.component) }} }{{- end }}
