{{- /* Written by `make generated` from templates/controllers/_policies.yaml.j2: edit that file. */}}
{{- /* matchConditions: requests of the controllers' account alone. */}}
{{- define "roost.only_the_controllers" -}}
- name: by-the-controllers
  expression: {{ toJson (printf "%s%s%s%s%s" "request.userInfo.username == 'system:serviceaccount:" $.root.Release.Namespace ":" (include "roost.object_name" (list $.root "controllers")) "'") }}{{- end }}
