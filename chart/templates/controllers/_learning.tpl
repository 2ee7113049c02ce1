{{- /* Written by `make generated` from templates/controllers/_learning.yaml.j2: edit that file. */}}
{{- /* "none;" while the controllers learn no set's number; otherwise the text names the sets. On one line, as it is compared. */}}
{{- define "roost.sets_that_learn" -}}
none{{ range $_, $set := include "roost.placeholder_sets" (list $.root $.root.Values.placeholders $.root.Values.placeholder.defaults) | fromJsonArray }}{{ if and $.root.Values.controllers.enabled $set.learn }}, but {{ toJson $set.name }}{{ end }}{{ end }};{{- end }}
