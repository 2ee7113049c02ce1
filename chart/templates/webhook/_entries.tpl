{{- /* Written by `roost chart` from templates/webhook/_entries.yaml.j2: edit that file. */}}
{{- /* The names of this release's entries in API servers' metrics: a regular expression, once its dots are replaced. */}}
{{- define "roost.own_entries" -}}
{{ toJson (printf "%s%s%s%s%s" "[a-z0-9-]+." $.root.Release.Name "." $.root.Release.Namespace ".roost.hub.jupyter.org") }}{{- end }}
