{{- /* Written by `make generated` from templates/webhook/_entries.yaml.j2: edit that file. */}}
{{- /* The names of this release's entries in API servers' metrics: a regular expression, once its dots are replaced. */}}
{{- define "roost.own_entries" -}}
{{ toJson (printf "%s%s%s%s%s" "[a-z0-9-]+." $.root.Release.Name "." $.root.Release.Namespace ".roost.hub.jupyter.org") }}{{- end }}
{{- /* How API servers call the webhook: the same in every entry. */}}
{{- define "roost.entry_call" -}}
admissionReviewVersions: [v1]
sideEffects: None
# KubeSpawner gives each creation of a pod 3 s (its k8s_api_request_timeout), and 30 s in all. A longer wait for a webhook that hangs would
# fail every start, and after five failures in a row JupyterHub exits.
timeoutSeconds: 2
matchPolicy: Equivalent
# Another webhook's change may change a pod's place. Reviewing a pod twice is safe: patches only add what is missing.
reinvocationPolicy: IfNeeded
clientConfig:
{{- if $.root.Values.webhook.url }}
  url: {{ toJson $.root.Values.webhook.url }}
{{- else }}
  service:
    name: {{ toJson (include "roost.object_name" (list $.root "webhook")) }}
    namespace: {{ toJson $.root.Release.Namespace }}
    path: /mutate
    port: 443
{{- end }}
{{- if and (eq $.root.Values.webhook.certificates.mode "secret") $.root.Values.webhook.certificates.caBundle }}
  caBundle: {{ toJson $.root.Values.webhook.certificates.caBundle }}
{{- end }}
rules:
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
    scope: Namespaced{{- end }}
{{- /* Which pods no entry is for. */}}
{{- define "roost.entry_conditions" -}}
matchConditions:
  - name: not-bound-yet
    expression: '!has(object.spec.nodeName) || object.spec.nodeName == ""'
  - name: no-mirror-pod
    expression: '!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations)'
  - name: not-opted-out
    expression: {{ toJson (printf "%s%s%s%s%s" "!has(object.metadata.annotations) || !('" "roost.hub.jupyter.org/opt-out" "' in object.metadata.annotations) || object.metadata.annotations['" "roost.hub.jupyter.org/opt-out" "'] != 'true'") }}
  # Otherwise a webhook that is down could block its own new pods.
  - name: none-of-roosts-own-programs
    expression: '!has(object.metadata.labels) || !("app.kubernetes.io/part-of" in object.metadata.labels) || object.metadata.labels["app.kubernetes.io/part-of"] != "roost" || !("app.kubernetes.io/component" in object.metadata.labels) || object.metadata.labels["app.kubernetes.io/component"] == "placeholder"'{{- end }}
