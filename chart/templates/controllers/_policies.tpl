{{- /* Written by `make generated` from templates/controllers/_policies.yaml.j2: edit that file. */}}
{{- /* matchConditions: requests of the controllers' account alone. */}}
{{- define "roost.only_the_controllers" -}}
- name: by-the-controllers
  expression: {{ toJson (printf "%s%s%s%s%s" "request.userInfo.username == 'system:serviceaccount:" $.root.Release.Namespace ":" (include "roost.object_name" (list $.root "controllers")) "'") }}{{- end }}
{{- /* Whether an object's metadata is as the programs make it, besides what was there: variables.oldMetadata, of `dyn`. */}}
{{- define "roost.of_the_programs" -}}
dyn(object.metadata).?labels.orValue({}).all(key, (key == "app.kubernetes.io/part-of" && object.metadata.labels[key] == "roost")
|| variables.oldMetadata.?labels[?key] == optional.of(object.metadata.labels[key]))
&& dyn(object.metadata).?annotations.orValue({}).all(key, variables.oldMetadata.?annotations[?key] == optional.of(object.metadata.annotations[key]))
&& dyn(object.metadata).?ownerReferences.orValue([]).all(owner, (owner.kind == "ServiceAccount" && owner.name == {{ toJson (include "roost.object_name" (list $.root "controllers")) }})
|| owner in variables.oldMetadata.?ownerReferences.orValue([]))
&& dyn(object.metadata).?finalizers.orValue([]) == variables.oldMetadata.?finalizers.orValue([]){{- end }}
