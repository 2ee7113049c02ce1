{{- /* Written by hand, as all of this folder: `helm test` and its hooks are Helm's own; who applies plain manifests runs
`roost doctor --pod`. */}}

{{- /* roost.tested_labels (list $): labels of a user's pod in this namespace; {} if none can be made up, so there is no test. */}}
{{- define "roost.tested_labels" -}}
{{- $root := index . 0 -}}
{{- $labels := dict -}}
{{- if and $root.Values.enabled $root.Values.rbac.create (ne $root.Values.admission.mode "none") -}}
{{- $match := ((($root.Values.podClasses).user).match) | default dict -}}
{{- if not (hasKey $match "namespaceSelector") -}}
{{- $labels = $match.labels | default dict -}}
{{- end -}}
{{- end -}}
{{- toJson $labels -}}
{{- end }}

{{- /* roost.test_metadata (list $ WEIGHT DELETE POD): of an object that lives as long as the test. POD: what `corePods` says, whose
annotations and labels only the pod has. */}}
{{- define "roost.test_metadata" -}}
{{- $root := index . 0 -}}
{{- $pod := index . 3 -}}
{{- $hook := dict "helm.sh/hook" "test" "helm.sh/hook-weight" (index . 1) "helm.sh/hook-delete-policy" (index . 2) -}}
{{- $labels := dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/component" "test" "app.kubernetes.io/part-of" "roost" "app.kubernetes.io/managed-by" "roost" -}}
name: {{ include "roost.object_name" (list $root "test") | toJson }}
namespace: {{ $root.Release.Namespace | toJson }}
annotations: {{ include "roost.merge" (list $root.Values.commonAnnotations $pod.annotations $hook) }}
labels: {{ include "roost.merge" (list $root.Values.commonLabels $pod.labels $labels) }}
{{- end }}
