{{- /* Written by `make generated` from templates/placeholder/_pod.yaml.j2: edit that file. */}}

{{- /* Selector of the pods of one placeholder set. */}}
{{- define "roost.placeholder_selector" -}}
{{ toJson (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "roost.hub.jupyter.org/placeholder-set" $.set_name) }}{{- end }}
{{- /* Preferred pod terms for other classes. `pairs`: a class's `join`. With sharedPools, pods of all hubs count. */}}
{{- define "roost.pod_terms" -}}
[
{{- range $other, $weight := $.pairs }}
{{- $match := (or (index $.root.Values.podClasses $other) (dict)).match }}
{{- if kindIs "invalid" $match }}
{{ fail (printf "%s%s%s" "podClasses has no class '" $other "', which a join names") }}
{{- end }}
  {
    weight: {{ toJson $weight }},
    podAffinityTerm: {
      topologyKey: {{ toJson "kubernetes.io/hostname" }},
{{- if not (kindIs "invalid" $.root.Values.sharedPools.namespaceSelector) }}
      namespaces: [{{ toJson $.root.Release.Namespace }}],
      namespaceSelector: {{ toJson $.root.Values.sharedPools.namespaceSelector }},
{{- else if not (kindIs "invalid" $match.namespaceSelector) }}
      namespaceSelector: {{ toJson $match.namespaceSelector }},
{{- end }}
      labelSelector: {matchLabels: {{ toJson $match.labels }} },
    },
  },
{{- end }}
]{{- end }}
{{- /* The pod of a placeholder. Its place is rendered, not left to the webhook: while a webhook is down, placeholders must not start where
   users don't go. But for `avoid`: only the webhook knows whether a term that breaks ties would do more. */}}
{{- define "roost.placeholder_pod" -}}
metadata:
{{- if $.set.annotations }}
  annotations: {{ toJson $.set.annotations }}
{{- end }}
  labels: {{ toJson (include "roost.merge" (list $.root.Values.commonLabels $.class.match.labels (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" "placeholder" "app.kubernetes.io/part-of" "roost" "roost.hub.jupyter.org/placeholder-set" $.set.name)) | fromJson) }}
spec:
{{- if and (eq $.root.Values.scheduler.target "deploy") $.class.profile }}
  schedulerName: {{ toJson (include "roost.scheduler_name" (list $.root $.class.profile)) }}
{{- end }}
{{- if $.root.Values.priorityClasses.enabled }}
  priorityClassName: {{ toJson (include "roost.cluster_object_name" (list $.root "placeholder")) }}
{{- end }}
  # A placeholder stops at once.
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  enableServiceLinks: false
{{- if $.root.Values.imagePullSecrets }}
  imagePullSecrets: {{ include "roost.pull_secrets" (dict "root" $.root) }}
{{- end }}
  # Notebooks' images are Linux's, and so is a placeholder's own: on Windows nodes it would never run.
  nodeSelector: {{ toJson (include "roost.merge" (list (dict "kubernetes.io/os" "linux") $.set.nodeSelector) | fromJson) }}
{{- if $.set.tolerations }}
  tolerations: {{ toJson $.set.tolerations }}
{{- end }}
  affinity:
    nodeAffinity:
{{- if $.set.requiredNodeTerms }}
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: {{ toJson $.set.requiredNodeTerms }}
{{- end }}
      preferredDuringSchedulingIgnoredDuringExecution:
{{- range $_, $term := $.class.preferredNodeTerms }}
        - {{ toJson $term }}
{{- end }}
        # The node that is marked for the set.
        - weight: 100
          preference:
            matchExpressions:
              - key: {{ toJson (include "roost.attract_label" (list $.root $.set.name)) }}
                operator: Exists
{{- if $.class.join }}
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
{{ include "roost.pod_terms" (dict "root" $.root "pairs" $.class.join) | indent 8 }}
{{- end }}
  securityContext: {{ toJson $.root.Values.podSecurityContext }}
  containers:
    - name: pause
      image: {{ toJson (include "roost.pause_image" (list $.root)) }}
      imagePullPolicy: {{ toJson $.root.Values.image.pullPolicy }}
{{- if and $.set.resources (or $.set.resources.requests $.set.resources.limits) }}
      resources: {{ include "roost.container_resources" (dict "root" $.root "resources" $.set.resources) }}
{{- end }}
      securityContext: {{ toJson $.root.Values.securityContext }}{{- end }}
