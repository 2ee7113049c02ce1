{{- /* Written by `make generated` from templates/shared/_cel.yaml.j2: edit that file. */}}
{{- /* Parts of the expressions in admission-policies.yaml.j2, in CEL. Maps are of `dyn` values: all values of a literal must be of one type
   here. What a loop adds with `||` or `&&` begins with `false` or ends with `true`, so that it may add nothing. */}}
{{- /* The schedulers whose pods Roost takes over. */}}
{{- define "roost.cel_schedulers" -}}
["default-scheduler", {{ range $_, $scheduler := $.root.Values.replaceSchedulers }}{{ toJson $scheduler }}, {{ end }}]{{- end }}
{{- /* Requirements of a selector (key, operator, values), as a list of maps. */}}
{{- define "roost.cel_requirements" -}}
dyn([
{{- range $_, $requirement := $.requirements }}
  {
    "key": dyn({{ toJson $requirement.key }}),
    "operator": dyn({{ toJson $requirement.operator }})
{{- if $requirement.values }}
    , "values": dyn({{ toJson $requirement.values }})
{{- end }}
  },
{{- end }}
]){{- end }}
{{- /* A node selector term as a map. */}}
{{- define "roost.cel_node_term" -}}
{
{{- if $.term.matchExpressions }}
  "matchExpressions": {{ include "roost.cel_requirements" (dict "root" $.root "requirements" $.term.matchExpressions) }},
{{- end }}
{{- if $.term.matchFields }}
  "matchFields": {{ include "roost.cel_requirements" (dict "root" $.root "requirements" $.term.matchFields) }},
{{- end }}
}{{- end }}
{{- /* Whether the requirement `e` of a pod is the same as `wanted`, in whichever order the values are. */}}
{{- define "roost.cel_same_requirement" -}}
(
  e.key == {{ toJson $.wanted.key }}
  && e.operator == {{ toJson $.wanted.operator }}
  && e.?values.orValue([]).all(v, v in {{ toJson (ternary (list) $.wanted.values (kindIs "invalid" $.wanted.values)) }})
  && {{ toJson (ternary (list) $.wanted.values (kindIs "invalid" $.wanted.values)) }}.all(v, v in e.?values.orValue([]))
){{- end }}
{{- /* Whether the preferred term `term` of a pod prefers what `wanted` does, whatever its weight: no requirement more, none less. */}}
{{- define "roost.cel_same_node_term" -}}
term.preference.?matchExpressions.orValue([]).all(e, false
{{- range $_, $requirement := $.wanted.matchExpressions }}
  || {{ include "roost.cel_same_requirement" (dict "root" $.root "wanted" $requirement) }}
{{- end }}
)
&& term.preference.?matchFields.orValue([]).all(e, false
{{- range $_, $requirement := $.wanted.matchFields }}
  || {{ include "roost.cel_same_requirement" (dict "root" $.root "wanted" $requirement) }}
{{- end }}
)
{{- range $_, $requirement := $.wanted.matchExpressions }}
&& term.preference.?matchExpressions.orValue([]).exists(e, {{ include "roost.cel_same_requirement" (dict "root" $.root "wanted" $requirement) }})
{{- end }}
{{- range $_, $requirement := $.wanted.matchFields }}
&& term.preference.?matchFields.orValue([]).exists(e, {{ include "roost.cel_same_requirement" (dict "root" $.root "wanted" $requirement) }})
{{- end }}
&& true{{- end }}
{{- /* Whether the labels of the pod's namespace meet one requirement of a label selector. The map says whether the label must be there. */}}
{{- define "roost.cel_meets" -}}
{{ toJson (dict "In" true "NotIn" false "Exists" true "DoesNotExist" false) }}[{{ toJson $.requirement.operator }}]
== namespaceObject.metadata.?labels[?{{ toJson $.requirement.key }}].optMap(value,
{{- if $.requirement.values }}
  value in {{ toJson $.requirement.values }}
{{- else }}
  true
{{- end }}
).orValue(false){{- end }}
{{- /* Whether a pod has the labels, and is in one of the namespaces, that a class's `match` names. */}}
{{- define "roost.cel_belongs" -}}
{{ toJson $.match.labels }}.all(key,
  object.metadata.?labels[?key] == optional.of({{ toJson $.match.labels }}[key])
)
&& {{ include "roost.cel_in_namespaces" (dict "root" $.root "match" $.match) }}{{- end }}
{{- /* Whether the request is about one of the namespaces that a class's `match` names. */}}
{{- define "roost.cel_in_namespaces" -}}
true
{{- if kindIs "invalid" $.match.namespaceSelector }}
&& request.namespace == {{ toJson $.root.Release.Namespace }}
{{- else }}
&& request.namespace != "kube-system"
&& {{ toJson (ternary (dict) $.match.namespaceSelector.matchLabels (kindIs "invalid" $.match.namespaceSelector.matchLabels)) }}.all(key,
  namespaceObject.metadata.?labels[?key]
  == optional.of({{ toJson (ternary (dict) $.match.namespaceSelector.matchLabels (kindIs "invalid" $.match.namespaceSelector.matchLabels)) }}[key])
)
{{- range $_, $requirement := $.match.namespaceSelector.matchExpressions }}
&& {{ include "roost.cel_meets" (dict "root" $.root "requirement" $requirement) }}
{{- end }}
{{- end }}
&& true{{- end }}
{{- /* A label selector as a map. */}}
{{- define "roost.cel_selector" -}}
{
{{- if $.selector.matchLabels }}
  "matchLabels": dyn({{ toJson $.selector.matchLabels }}),
{{- end }}
{{- if $.selector.matchExpressions }}
  "matchExpressions": {{ include "roost.cel_requirements" (dict "root" $.root "requirements" $.selector.matchExpressions) }},
{{- end }}
}{{- end }}
{{- /* A podAffinityTerm towards pods of the class `other`, for a pod of the class `own`: both are a class's `match`. */}}
{{- define "roost.cel_pod_term" -}}
{
  "topologyKey": dyn({{ toJson "kubernetes.io/hostname" }}),
  "labelSelector": dyn({"matchLabels": {{ toJson $.other.labels }}}),
{{- if not (kindIs "invalid" $.root.Values.sharedPools.namespaceSelector) }}
  "namespaces": dyn([{{ toJson $.root.Release.Namespace }}]),
  "namespaceSelector": dyn({{ include "roost.cel_selector" (dict "root" $.root "selector" $.root.Values.sharedPools.namespaceSelector) }}),
{{- else if not (kindIs "invalid" $.other.namespaceSelector) }}
  "namespaceSelector": dyn({{ include "roost.cel_selector" (dict "root" $.root "selector" $.other.namespaceSelector) }}),
{{- else if not (kindIs "invalid" $.own.namespaceSelector) }}
  "namespaces": dyn([{{ toJson $.root.Release.Namespace }}]),
{{- end }}
}{{- end }}
{{- /* The patches that make the way to a part of a pod's affinity, as far as it is missing: JSON Patch adds no parents. */}}
{{- define "roost.cel_way_to_affinity" -}}
(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: {}}]){{- end }}
{{- define "roost.cel_way_to_node_affinity" -}}
{{ include "roost.cel_way_to_affinity" (dict "root" $.root) }}
+ (has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) ? []
  : [JSONPatch{op: "add", path: "/spec/affinity/nodeAffinity", value: {}}]){{- end }}
{{- define "roost.cel_way_to_pod_affinity" -}}
{{ include "roost.cel_way_to_affinity" (dict "root" $.root) }}
+ (has(object.spec.affinity) && has(object.spec.affinity.podAffinity) ? []
  : [JSONPatch{op: "add", path: "/spec/affinity/podAffinity", value: {}}])
+ (has(object.spec.affinity) && has(object.spec.affinity.podAffinity)
  && has(object.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution) ? []
  : [JSONPatch{op: "add", path: "/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution", value: []}]){{- end }}
{{- define "roost.cel_way_to_pod_anti_affinity" -}}
{{ include "roost.cel_way_to_affinity" (dict "root" $.root) }}
+ (has(object.spec.affinity) && has(object.spec.affinity.podAntiAffinity) ? []
  : [JSONPatch{op: "add", path: "/spec/affinity/podAntiAffinity", value: {}}])
+ (has(object.spec.affinity) && has(object.spec.affinity.podAntiAffinity)
  && has(object.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution) ? []
  : [JSONPatch{op: "add", path: "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution", value: []}]){{- end }}
