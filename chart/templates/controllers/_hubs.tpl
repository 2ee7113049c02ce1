{{- /* Written by `make generated` from templates/controllers/_hubs.yaml.j2: edit that file. */}}
{{- /* "no;" while the users of every class are in the release's namespace; otherwise the text names the classes. On one line, as it is compared. */}}
{{- define "roost.hubs_elsewhere" -}}
no{{ range $name, $class := $.root.Values.podClasses }}{{ if and (not (kindIs "invalid" $class.match.namespaceSelector)) (or (eq $name "user") $class.imageGate) }}, but {{ toJson $name }}{{ end }}{{ end }};{{- end }}
