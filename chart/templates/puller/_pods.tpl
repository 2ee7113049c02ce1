{{- /* Written by `make generated` from templates/puller/_pods.yaml.j2: edit that file. */}}
{{- /* Pull secrets of the puller's pods: those of all pods and those of users' images. */}}
{{- define "roost.puller_pull_secrets" -}}
[{{ range $_, $secret := uniq (concat $.root.Values.imagePullSecrets $.root.Values.singleuser.image.pullSecrets) }}{"name": {{ toJson $secret }}},{{ end }}]{{- end }}
