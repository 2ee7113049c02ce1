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
{{- /* Those of the puller's pods. */}}
{{- define "roost.puller_pull_secrets" -}}
[{{ range $_, $secret := uniq (concat $.root.Values.imagePullSecrets $.root.Values.singleuser.image.pullSecrets) }}{"name": {{ toJson $secret }}},{{ end }}]{{- end }}
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
[{{ range $other, $weight := $.pairs }}{{ if kindIs "invalid" (index $.root.Values.podClasses $other) }}{{ fail (printf "%s%s%s" "podClasses has no class '" $other "', which a join or avoid names") }}{{ end }}{"weight": {{ toJson $weight }}, "podAffinityTerm": {"topologyKey": {{ toJson "kubernetes.io/hostname" }}, {{ if not (kindIs "invalid" $.root.Values.sharedPools.namespaceSelector) }}"namespaces": [{{ toJson $.root.Release.Namespace }}], "namespaceSelector": {{ toJson $.root.Values.sharedPools.namespaceSelector }}, {{ else if not (kindIs "invalid" (index $.root.Values.podClasses $other).match.namespaceSelector) }}"namespaceSelector": {{ toJson (index $.root.Values.podClasses $other).match.namespaceSelector }}, {{ end }}"labelSelector": {"matchLabels": {{ toJson (index $.root.Values.podClasses $other).match.labels }} } } }, {{ end }}]{{- end }}
{{- /* "no" while every class keeps to the release's namespace, and no warm set counts pods of other hubs: then nothing outside it
   needs to be read. */}}
{{- define "roost.some_class_elsewhere" -}}
no{{ range $name, $class := $.root.Values.podClasses }}{{ if or (not (kindIs "invalid" $class.match.namespaceSelector)) (and (not (kindIs "invalid" $class.warm)) (not (kindIs "invalid" $.root.Values.sharedPools.namespaceSelector))) }}, but {{ toJson $name }}{{ end }}{{ end }};{{- end }}
{{- /* CEL: the schedulers whose pods Roost takes over. */}}
{{- define "roost.cel_schedulers" -}}
["default-scheduler", {{ range $_, $scheduler := $.root.Values.replaceSchedulers }}{{ toJson $scheduler }}, {{ end }}]{{- end }}
{{- /* CEL: a node selector term as a map; `dyn`, for all values of a literal must be of one type. */}}
{{- define "roost.cel_node_term" -}}
{ {{ if $.term.matchExpressions }}"matchExpressions": dyn([{{ range $_, $one := $.term.matchExpressions }}{"key": dyn({{ toJson $one.key }}), "operator": dyn({{ toJson $one.operator }}){{ if $one.values }}, "values": dyn({{ toJson $one.values }}){{ end }}}, {{ end }}]), {{ end }}{{ if $.term.matchFields }}"matchFields": dyn([{{ range $_, $one := $.term.matchFields }}{"key": dyn({{ toJson $one.key }}), "operator": dyn({{ toJson $one.operator }}), "values": dyn({{ toJson $one.values }})}, {{ end }}]), {{ end }}}{{- end }}
{{- /* CEL: whether `e`, of a pod, asks what `expression` asks; the order of values means nothing. */}}
{{- define "roost.cel_same_expression" -}}
(e.key == {{ toJson $.expression.key }} && e.operator == {{ toJson $.expression.operator }} && e.?values.orValue([]).all(v, v in {{ toJson (ternary (list) $.expression.values (kindIs "invalid" $.expression.values)) }}) && {{ toJson (ternary (list) $.expression.values (kindIs "invalid" $.expression.values)) }}.all(v, v in e.?values.orValue([]))){{- end }}
{{- /* CEL: whether the preferred term `term`, of a pod, has this preference, whatever its weight. */}}
{{- define "roost.cel_same_node_term" -}}
term.preference.?matchExpressions.orValue([]).all(e, false{{ range $_, $one := $.wanted.matchExpressions }} || {{ include "roost.cel_same_expression" (dict "root" $.root "expression" $one) }}{{ end }}) && term.preference.?matchFields.orValue([]).all(e, false{{ range $_, $one := $.wanted.matchFields }} || {{ include "roost.cel_same_expression" (dict "root" $.root "expression" $one) }}{{ end }}){{ range $_, $one := $.wanted.matchExpressions }} && term.preference.?matchExpressions.orValue([]).exists(e, {{ include "roost.cel_same_expression" (dict "root" $.root "expression" $one) }}){{ end }}{{ range $_, $one := $.wanted.matchFields }} && term.preference.?matchFields.orValue([]).exists(e, {{ include "roost.cel_same_expression" (dict "root" $.root "expression" $one) }}){{ end }} && true{{- end }}
{{- /* CEL: whether the namespace's labels meet an expression of a label selector. */}}
{{- define "roost.cel_meets" -}}
{{ toJson (dict "In" true "NotIn" false "Exists" true "DoesNotExist" false) }}[{{ toJson $.expression.operator }}] == namespaceObject.metadata.?labels[?{{ toJson $.expression.key }}].optMap(value, {{ if $.expression.values }}value in {{ toJson $.expression.values }}{{ else }}true{{ end }}).orValue(false){{- end }}
{{- /* CEL: whether the pod's labels and namespace are those that a class's `match` asks for. */}}
{{- define "roost.cel_belongs" -}}
{{ toJson $.match.labels }}.all(key, object.metadata.?labels[?key] == optional.of({{ toJson $.match.labels }}[key])){{ if kindIs "invalid" $.match.namespaceSelector }} && request.namespace == {{ toJson $.root.Release.Namespace }}{{ else }} && request.namespace != "kube-system" && {{ toJson (ternary (dict) $.match.namespaceSelector.matchLabels (kindIs "invalid" $.match.namespaceSelector.matchLabels)) }}.all(key, namespaceObject.metadata.?labels[?key] == optional.of({{ toJson (ternary (dict) $.match.namespaceSelector.matchLabels (kindIs "invalid" $.match.namespaceSelector.matchLabels)) }}[key])){{ range $_, $expression := $.match.namespaceSelector.matchExpressions }} && {{ include "roost.cel_meets" (dict "root" $.root "expression" $expression) }}{{ end }} && true{{ end }} && true{{- end }}
{{- /* CEL: a label selector as a map. */}}
{{- define "roost.cel_selector" -}}
{ {{ if $.selector.matchLabels }}"matchLabels": dyn({{ toJson $.selector.matchLabels }}), {{ end }}{{ if $.selector.matchExpressions }}"matchExpressions": dyn({{ include "roost.cel_node_term" (dict "root" $.root "term" $.selector) }}.matchExpressions), {{ end }}}{{- end }}
{{- /* CEL: a soft pod term's podAffinityTerm towards the class `other`, of a pod of class `own`: both are their `match`. */}}
{{- define "roost.cel_pod_term" -}}
{"topologyKey": dyn({{ toJson "kubernetes.io/hostname" }}), "labelSelector": dyn({"matchLabels": {{ toJson $.other.labels }}}), {{ if not (kindIs "invalid" $.root.Values.sharedPools.namespaceSelector) }}"namespaces": dyn([{{ toJson $.root.Release.Namespace }}]), "namespaceSelector": dyn({{ include "roost.cel_selector" (dict "root" $.root "selector" $.root.Values.sharedPools.namespaceSelector) }}), {{ else if not (kindIs "invalid" $.other.namespaceSelector) }}"namespaceSelector": dyn({{ include "roost.cel_selector" (dict "root" $.root "selector" $.other.namespaceSelector) }}), {{ else if not (kindIs "invalid" $.own.namespaceSelector) }}"namespaces": dyn([{{ toJson $.root.Release.Namespace }}]), {{ end }}}{{- end }}
{{- /* CEL: the patches that make the way to a part of a pod's affinity, as far as it is missing. */}}
{{- define "roost.cel_way_to_node_affinity" -}}
(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/nodeAffinity", value: {}}]){{- end }}
{{- define "roost.cel_way_to_pod_affinity" -}}
(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAffinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAffinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAffinity) && has(object.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution", value: []}]){{- end }}
{{- define "roost.cel_way_to_pod_anti_affinity" -}}
(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAntiAffinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAntiAffinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAntiAffinity) && has(object.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution", value: []}]){{- end }}
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
  kubeconfig: ""
  qps: {{ toJson $.root.Values.scheduler.clientConnection.qps }}
  burst: {{ toJson $.root.Values.scheduler.clientConnection.burst }}
# Profiles of a running scheduler are nobody's business on the pod network.
enableProfiling: false{{- end }}
{{- /* What the controllers follow. */}}
{{- define "roost.controllers_settings" -}}
{{ toPrettyJson (dict "version" 1 "release" $.root.Release.Name "namespace" $.root.Release.Namespace "podClasses" $.root.Values.podClasses "gate" (dict "mode" $.root.Values.imageGate.mode "pullDeadlineSeconds" $.root.Values.imageGate.pullDeadlineSeconds "openAfterSeconds" $.root.Values.imageGate.openAfterSeconds "hasPuller" $.root.Values.prePuller.enabled "nodeCondition" $.root.Values.imageGate.nodeCondition "pullerPods" $.root.Values.imageGate.pullerPods "pullers" (include "roost.pullers" (list $.root $.root.Values.singleuser $.root.Values.prePuller) | fromJsonArray)) "placeholderMover" $.root.Values.placeholderMover "placeholders" (include "roost.placeholder_sets" (list $.root $.root.Values.placeholders $.root.Values.placeholder.defaults) | fromJsonArray) "placeholderBackend" $.root.Values.placeholder.backend "popularImages" $.root.Values.popularImages "puller" (dict "method" (include "roost.puller_method" (list $.root)) "image" (include "roost.own_image" (list $.root)) "pauseImage" (printf "%s%s%s" $.root.Values.placeholder.image.name ":" $.root.Values.placeholder.image.tag) "pullSecrets" (uniq (concat $.root.Values.imagePullSecrets $.root.Values.singleuser.image.pullSecrets)) "tolerations" (concat $.root.Values.prePuller.tolerations (list (dict "key" (include "roost.startup_taint" (list $.root)) "operator" "Exists"))) "priorityClassName" (or (and $.root.Values.priorityClasses.enabled (include "roost.cluster_object_name" (list $.root "puller"))) "") "serviceAccountName" (include "roost.object_name" (list $.root "puller")))) }}{{- end }}
{{- /* What the recorder is told. */}}
{{- define "roost.recorder_settings" -}}
{{ toPrettyJson (dict "version" 1 "release" $.root.Release.Name "namespace" $.root.Release.Namespace "podClasses" $.root.Values.podClasses "gate" (dict "mode" $.root.Values.imageGate.mode "pullers" (include "roost.pullers" (list $.root $.root.Values.singleuser $.root.Values.prePuller) | fromJsonArray)) "retentionDays" $.root.Values.recorder.retentionDays) }}{{- end }}
{{- /* matchConditions: requests of the controllers' account. */}}
{{- define "roost.only_the_controllers" -}}
[{"name": "by-the-controllers", "expression": {{ toJson (printf "%s%s%s%s%s" "request.userInfo.username == 'system:serviceaccount:" $.root.Release.Namespace ":" (include "roost.object_name" (list $.root "controllers")) "'") }}}]{{- end }}
{{- /* Requests and limits of one container of the puller. */}}
{{- define "roost.puller_resources" -}}
{ {{ if $.root.Values.prePuller.resources.requests }}"requests": {{ toJson $.root.Values.prePuller.resources.requests }}, {{ end }}{{ if $.root.Values.prePuller.resources.limits }}"limits": {{ toJson $.root.Values.prePuller.resources.limits }}{{ end }}}{{- end }}
{{- /* The pod of a placeholder. Its place is rendered here, not left to the webhook: a webhook that is down must not put placeholders where users
   don't go. `draws`: whether the node that is marked for the set draws it. */}}
{{- define "roost.placeholder_pod" -}}
metadata:
{{- if $.set.annotations }}
  annotations: {{ toJson $.set.annotations }}
{{- end }}
  labels: {{ toJson (include "roost.merge" (list $.root.Values.commonLabels $.set.labels $.class.match.labels (dict "app.kubernetes.io/name" "roost" "app.kubernetes.io/instance" $.root.Release.Name "app.kubernetes.io/component" "placeholder" "app.kubernetes.io/part-of" "roost" "roost.hub.jupyter.org/placeholder-set" $.set.name)) | fromJson) }}
spec:
{{- if and (eq $.root.Values.scheduler.target "deploy") $.class.profile }}
  schedulerName: {{ toJson (include "roost.scheduler_name" (list $.root $.class.profile)) }}
{{- end }}
{{- if $.root.Values.priorityClasses.enabled }}
  priorityClassName: {{ toJson (include "roost.cluster_object_name" (list $.root "placeholder")) }}
{{- end }}
  # A placeholder gives way at once.
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  enableServiceLinks: false
{{- if $.root.Values.imagePullSecrets }}
  imagePullSecrets: {{ include "roost.pull_secrets" (dict "root" $.root) }}
{{- end }}
{{- if $.set.nodeSelector }}
  nodeSelector: {{ toJson $.set.nodeSelector }}
{{- end }}
{{- if $.set.tolerations }}
  tolerations: {{ toJson $.set.tolerations }}
{{- end }}
{{- if or (or (or (or $.set.requiredNodeTerms $.class.preferredNodeTerms) $.draws) $.class.join) $.class.avoid }}
  affinity:
{{- if or (or $.set.requiredNodeTerms $.class.preferredNodeTerms) $.draws }}
    nodeAffinity:
{{- if $.set.requiredNodeTerms }}
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: {{ toJson $.set.requiredNodeTerms }}
{{- end }}
{{- if or $.class.preferredNodeTerms $.draws }}
      preferredDuringSchedulingIgnoredDuringExecution:
{{- range $_, $term := $.class.preferredNodeTerms }}
        - {{ toJson $term }}
{{- end }}
{{- if $.draws }}
        - weight: 100
          preference:
            matchExpressions:
              - key: {{ toJson (include "roost.attract_label" (list $.root $.set.name)) }}
                operator: Exists
{{- end }}
{{- end }}
{{- end }}
{{- if $.class.join }}
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: {{ include "roost.pod_terms" (dict "root" $.root "pairs" $.class.join) }}
{{- end }}
{{- if $.class.avoid }}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: {{ include "roost.pod_terms" (dict "root" $.root "pairs" $.class.avoid) }}
{{- end }}
{{- end }}
  securityContext: {{ include "roost.pod_security" (dict "root" $.root) }}
  containers:
    - name: pause
      image: {{ toJson (printf "%s%s%s" $.root.Values.placeholder.image.name ":" $.root.Values.placeholder.image.tag) }}
      imagePullPolicy: {{ toJson $.root.Values.placeholder.image.pullPolicy }}
{{- if and $.set.resources (or $.set.resources.requests $.set.resources.limits) }}
      resources:
{{- if $.set.resources.requests }}
        requests: {{ toJson $.set.resources.requests }}
{{- end }}
{{- if $.set.resources.limits }}
        limits: {{ toJson $.set.resources.limits }}
{{- end }}
{{- end }}
      securityContext: {{ include "roost.container_security" (dict "root" $.root) }}{{- end }}
