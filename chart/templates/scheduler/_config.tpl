{{- /* Written by `make generated` from templates/scheduler/_config.yaml.j2: edit that file. */}}
{{- /* What a scheduler's host is named by: the names of its profiles. It stands in the Lease's holder, so the webhook names no profile that the
   leader lacks, as when a new configuration keeps the new scheduler from starting. */}}
{{- define "roost.profile_names" -}}
profiles:
{{- range $name, $profile := $.root.Values.scheduler.profiles }}
  - {{ toJson $name }}
{{- if or (eq (toJson $profile.strategy) "\"pack\"") (eq (toJson $profile.strategy) "\"imageFirst\"") }}
  - {{ toJson (printf "%s%s" $name "_strict") }}
{{- end }}
{{- end }}
of: {{ toJson $.root.Release.Name }}{{- end }}
{{- /* One profile by a strategy's weights, or by its own plugins. */}}
{{- define "roost.scheduler_profile" -}}
-
{{- if $.profile.plugins }}
  plugins: {{ toJson $.profile.plugins }}
{{- else }}
  plugins:
    score:
      disabled:
        - name: NodeResourcesBalancedAllocation
      enabled:
        - {name: ImageLocality, weight: {{ toJson $.weights.image }} }
        - {name: InterPodAffinity, weight: {{ toJson $.weights.pods }} }
        - {name: NodeAffinity, weight: 104060401}
        - {name: NodeResourcesFit, weight: {{ toJson $.weights.fit }} }
        - {name: PodTopologySpread, weight: {{ toJson $.weights.pods }} }
        - {name: TaintToleration, weight: 1030301}
{{- end }}
{{- if $.profile.pluginConfig }}
  pluginConfig: {{ toJson $.profile.pluginConfig }}
{{- else }}
  pluginConfig:
    # Default spreading would work against packing, for placeholders and for pods that a Service selects.
    - name: PodTopologySpread
      args:
        defaultingType: List
        defaultConstraints: []
    - name: NodeResourcesFit
      args:
        scoringStrategy:
          type: {{ toJson $.weights.type }}
          resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
{{- end }}
  schedulerName: {{ toJson (include "roost.scheduler_name" (list $.root $.name)) }}{{- end }}
{{- /* The scheduler's configuration: one profile for each of `scheduler.profiles`, and a strict one beside each that packs. The mover
   and the recorder read it too. */}}
{{- define "roost.scheduler_config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{{- /* Weights by strategy. Powers of 101: scores go up to 100, so the plugin with the higher weight always decides first.
   kube-scheduler takes weight 0 for 1. Node terms, then taints come first in all of them. `pack` alone adds two up: whom a class
   joins, and four times how full the node is. `strict` is its order for pods whose author wrote terms about pods or spreading. */}}
{{- $strategies := dict "pack" (dict "pods" 101 "fit" 404 "image" 1 "type" "MostAllocated") "strict" (dict "pods" 10201 "fit" 101 "image" 1 "type" "MostAllocated") "imageFirst" (dict "pods" 101 "fit" 1 "image" 10201 "type" "MostAllocated") "sticky" (dict "pods" 10201 "fit" 101 "image" 1 "type" "LeastAllocated") "spread" (dict "pods" 101 "fit" 10201 "image" 1 "type" "LeastAllocated") }}
{{- /* By default kube-scheduler scores only a part of 100 nodes or more, and often misses the one node that a pod should go to: the fullest,
   or the repository's home. Its price grows with the number of nodes: docs/performance.md. */}}
percentageOfNodesToScore: 100
{{- if not $.root.Values.scheduler.profiles }}
{{ fail "scheduler.profiles is empty: kube-scheduler would then take the place of the cluster's own" }}
{{- end }}
profiles:
{{- range $name, $profile := $.root.Values.scheduler.profiles }}
{{- $strategy := index $strategies (ternary "" $profile.strategy (kindIs "invalid" $profile.strategy)) }}
{{- if and (kindIs "invalid" $strategy) (not (and $profile.plugins $profile.pluginConfig)) }}
{{ fail (printf "%s%s%s" "scheduler.profiles." $name " has neither a strategy nor plugins and pluginConfig of its own") }}
{{- end }}
{{ include "roost.scheduler_profile" (dict "root" $.root "name" $name "profile" $profile "weights" $strategy) | indent 2 }}
{{- if eq (toJson $profile.strategy) "\"pack\"" }}
{{ include "roost.scheduler_profile" (dict "root" $.root "name" (printf "%s%s" $name "_strict") "profile" $profile "weights" $strategies.strict) | indent 2 }}
{{- end }}
{{- /* An upgrade from one of these strategies to the other changes no name, so no pod waits for one that its scheduler lacks. */}}
{{- if eq (toJson $profile.strategy) "\"imageFirst\"" }}
{{ include "roost.scheduler_profile" (dict "root" $.root "name" (printf "%s%s" $name "_strict") "profile" $profile "weights" $strategy) | indent 2 }}
{{- end }}
{{- end }}
{{- /* Its durations are kube-scheduler's own: 15 s, 10 s to renew, a try each 2 s. */}}
leaderElection:
  leaderElect: true
  resourceLock: leases
  resourceName: {{ toJson (include "roost.object_name" (list $.root "scheduler")) }}
  resourceNamespace: {{ toJson $.root.Release.Namespace }}
clientConnection:
  # Empty: the account of the pod.
  kubeconfig: ""
  # A pre-emption takes four requests: with the defaults of 50 and 100, the last of 100 users who start together and pre-empt waits
  # 6 s for this limit alone.
  qps: 200
  burst: 400
# Profiles of a running scheduler are nobody's business on the pod network.
enableProfiling: false{{- end }}
