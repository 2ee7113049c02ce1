{{- /* Written by `make generated` from templates/controllers/_policies.yaml.j2: edit that file. */}}
{{- /* matchConditions: requests of the controllers' account alone. */}}
{{- define "roost.only_the_controllers" -}}
- name: by-the-controllers
  expression: {{ toJson (printf "%s%s%s%s%s" "request.userInfo.username == 'system:serviceaccount:" $.root.Release.Namespace ":" (include "roost.object_name" (list $.root "controllers")) "'") }}{{- end }}
{{- /* JSON: the StatefulSets whose placeholders fill a node each, which the controllers therefore resize. */}}
{{- define "roost.sets_of_whole_nodes" -}}
[{{ range $_, $set := $.root.Values.placeholders }}{{ if eq (ternary "pods" $set.countBy (kindIs "invalid" $set.countBy)) "nodes" }}{{ toJson (include "roost.object_name" (list $.root (printf "%s%s" "placeholder-" $set.name) 52)) }},{{ end }}{{ end }}]{{- end }}
