{{- /* Written by `make generated` from templates/puller/_pods.yaml.j2: edit that file. */}}
{{- /* Pull secrets of the puller's pods: those of all pods and those of users' images. */}}
{{- define "roost.puller_pull_secrets" -}}
[{{ range $_, $secret := uniq (include "roost.secret_names" (list $.root (concat $.root.Values.imagePullSecrets $.root.Values.singleuser.image.pullSecrets)) | fromJsonArray) }}{"name": {{ toJson $secret }}},{{ end }}]{{- end }}
{{- /* "no;" where no pod pulls images, neither of a DaemonSet nor of the controllers. On one line, as it is compared. */}}
{{- define "roost.pullers_run" -}}
no{{ if or (and $.root.Values.prePuller.enabled (include "roost.pullers" (list $.root $.root.Values.singleuser $.root.Values.prePuller) | fromJsonArray)) (and $.root.Values.controllers.enabled (or $.root.Values.popularImages.enabled $.root.Values.events.enabled)) }}, but some{{ end }};{{- end }}
