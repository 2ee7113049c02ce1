{{- /* Written by `roost chart` from templates/_macros.yaml.j2: edit that file. */}}
{{- /* What several objects share. A macro begins and ends with text, and prints every value through to_json. */}}
{{- /* metadata of an object in the release's namespace; `annotations` are added to those of all objects. */}}
{{- define "roost.metadata" -}}
name: {{ toJson $.name }}
namespace: {{ toJson $.root.Release.Namespace }}
{{- $all_annotations := include "roost.merge" (list $.root.Values.commonAnnotations $.annotations) | fromJson }}
{{- if $all_annotations }}
annotations: {{ toJson $all_annotations }}
{{- end }}
labels: {{ toJson (include "roost.merge" (list $.root.Values.commonLabels (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" $.component "app.kubernetes.io/managed-by" "roost" "app.kubernetes.io/part-of" "roost")) | fromJson) }}{{- end }}
{{- /* metadata of an object without a namespace. */}}
{{- define "roost.cluster_metadata" -}}
name: {{ toJson $.name }}
{{- $all_annotations := include "roost.merge" (list $.root.Values.commonAnnotations $.annotations) | fromJson }}
{{- if $all_annotations }}
annotations: {{ toJson $all_annotations }}
{{- end }}
labels: {{ toJson (include "roost.merge" (list $.root.Values.commonLabels (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" $.component "app.kubernetes.io/managed-by" "roost" "app.kubernetes.io/part-of" "roost")) | fromJson) }}{{- end }}
{{- /* What selects the pods of a component. Selectors are immutable: this never changes between versions. */}}
{{- define "roost.selector" -}}
{{ toJson (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" $.component) }}{{- end }}
{{- /* Labels of a component's pods: the operator's, then those that the selector asks for. */}}
{{- define "roost.pod_labels" -}}
{{ toJson (include "roost.merge" (list $.root.Values.commonLabels $.labels (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" $.component "app.kubernetes.io/part-of" "roost")) | fromJson) }}{{- end }}
{{- /* What selects the pods of one placeholder set. */}}
{{- define "roost.placeholder_selector" -}}
{{ toJson (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "roost.hub.jupyter.org/placeholder-set" $.set_name) }}{{- end }}
{{- /* Pull secrets: names in the values, objects in a pod. */}}
{{- define "roost.pull_secrets" -}}
[{{ range $_, $secret := $.root.Values.imagePullSecrets }}{"name": {{ toJson $secret }}},{{ end }}]{{- end }}
{{- /* The `restricted` Pod Security Standard, for a pod and for its container. */}}
{{- define "roost.pod_security" -}}
{"runAsNonRoot": true, "runAsUser": 65534, "runAsGroup": 65534, "fsGroup": 65534, "seccompProfile": {"type": "RuntimeDefault"}}{{- end }}
{{- define "roost.container_security" -}}
{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}}{{- end }}
{{- /* Replicas rather on different nodes and in different zones, but never waiting for one. */}}
{{- define "roost.spread" -}}
[{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {{ include "roost.selector" (dict "root" $.root "component" $.component) }}}}, {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {{ include "roost.selector" (dict "root" $.root "component" $.component) }}}}]{{- end }}
{{- /* Soft pod terms towards classes: `pairs` is a class's `join` or `avoid`. */}}
{{- define "roost.pod_terms" -}}
[{{ range $other, $weight := $.pairs }}{{ if kindIs "invalid" (index $.root.Values.podClasses $other) }}{{ fail (printf "%s%s%s" "podClasses has no class '" $other "', which a join or avoid names") }}{{ end }}{"weight": {{ toJson $weight }}, "podAffinityTerm": {"topologyKey": {{ toJson "kubernetes.io/hostname" }}, {{ if not (kindIs "invalid" (index $.root.Values.podClasses $other).match.namespaceSelector) }}"namespaceSelector": {{ toJson (index $.root.Values.podClasses $other).match.namespaceSelector }}, {{ end }}"labelSelector": {"matchLabels": {{ toJson (index $.root.Values.podClasses $other).match.labels }} } } }, {{ end }}]{{- end }}
{{- /* "no" while every class keeps to the release's namespace: then nothing outside it needs to be read. */}}
{{- define "roost.some_class_elsewhere" -}}
no{{ range $name, $class := $.root.Values.podClasses }}{{ if not (kindIs "invalid" $class.match.namespaceSelector) }}, but {{ toJson $name }}{{ end }}{{ end }};{{- end }}
{{- /* The scheduler's configuration: one profile each of `scheduler.profiles`. */}}
{{- define "roost.scheduler_config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: {{ toJson $.root.Values.scheduler.percentageOfNodesToScore }}
{{- if not $.root.Values.scheduler.profiles }}
{{ fail "scheduler.profiles is empty: kube-scheduler would then take the place of the cluster's own" }}
{{- end }}
profiles:
{{- range $name, $profile := $.root.Values.scheduler.profiles }}
  - schedulerName: {{ toJson (include "roost.scheduler_name" (list $.root $name)) }}
{{- $strategy := index $.root.Values.scheduler.strategies (ternary "" $profile.strategy (kindIs "invalid" $profile.strategy)) }}
{{- if and (kindIs "invalid" $strategy) (not (and $profile.plugins $profile.pluginConfig)) }}
{{ fail (printf "%s%s%s" "scheduler.profiles." $name ".strategy is no key of scheduler.strategies") }}
{{- end }}
{{- if $profile.plugins }}
    plugins: {{ toJson $profile.plugins }}
{{- else }}
    plugins:
      score:
        disabled:
{{- range $_, $plugin := $strategy.disabled }}
          - name: {{ toJson $plugin }}
{{- end }}
        enabled:
{{- range $plugin, $weight := $strategy.weights }}
          - name: {{ toJson $plugin }}
            weight: {{ toJson $weight }}
{{- end }}
{{- end }}
{{- if $profile.pluginConfig }}
    pluginConfig: {{ toJson $profile.pluginConfig }}
{{- else }}
    pluginConfig:
      # Default spreading would work against packing, for placeholders and for pods that a Service selects.
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints: []
{{- if $strategy.fit }}
      - name: NodeResourcesFit
        args:
          scoringStrategy: {{ toJson $strategy.fit }}
{{- end }}
{{- end }}
{{- end }}
leaderElection:
  leaderElect: true
  resourceLock: leases
  resourceName: {{ toJson (include "roost.object_name" (list $.root "scheduler")) }}
  resourceNamespace: {{ toJson $.root.Release.Namespace }}
  leaseDuration: {{ toJson $.root.Values.scheduler.leaderElection.leaseDuration }}
  renewDeadline: {{ toJson $.root.Values.scheduler.leaderElection.renewDeadline }}
  retryPeriod: {{ toJson $.root.Values.scheduler.leaderElection.retryPeriod }}
clientConnection:
  # Empty: the account of the pod.
  kubeconfig: ""{{- end }}
