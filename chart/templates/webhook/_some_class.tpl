{{- /* Written by `make generated` from templates/webhook/_some_class.yaml.j2: edit that file. */}}
{{- /* Conditions on which role and clusterrole give rights.
   "no;" while every class keeps to the release's namespace, and no warm set counts pods of other hubs: then nothing outside it needs
   to be read. Otherwise the text names the classes. On one line, as it is compared. */}}
{{- define "roost.some_class_elsewhere" -}}
no{{ range $name, $class := $.root.Values.podClasses }}{{ if or (not (kindIs "invalid" $class.match.namespaceSelector)) (and (not (kindIs "invalid" $class.warm)) (not (kindIs "invalid" $.root.Values.sharedPools.namespaceSelector))) }}, but {{ toJson $name }}{{ end }}{{ end }};{{- end }}
{{- /* "no;" while no class gives requests to pods without any. */}}
{{- define "roost.some_class_requests" -}}
no{{ range $name, $class := $.root.Values.podClasses }}{{ if $class.resources }}, but {{ toJson $name }}{{ end }}{{ end }};{{- end }}
