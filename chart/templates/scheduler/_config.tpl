{{- /* Written by `make generated` from templates/scheduler/_config.yaml.j2: edit that file. */}}
{{- /* The scheduler's configuration: one profile for each of `scheduler.profiles`. The mover and the recorder read it too. */}}
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
  kubeconfig: ""
  qps: {{ toJson $.root.Values.scheduler.clientConnection.qps }}
  burst: {{ toJson $.root.Values.scheduler.clientConnection.burst }}
# Profiles of a running scheduler are nobody's business on the pod network.
enableProfiling: false{{- end }}
