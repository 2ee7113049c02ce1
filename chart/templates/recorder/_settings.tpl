{{- /* Written by `make generated` from templates/recorder/_settings.yaml.j2: edit that file. */}}
{{- /* recorder.json, which lab/roost_lab/recorder/recording/settings.py reads. */}}
{{- define "roost.recorder_settings" -}}
{{ toPrettyJson (dict "version" 1 "release" $.root.Release.Name "namespace" $.root.Release.Namespace "podClasses" $.root.Values.podClasses "gate" (dict "mode" $.root.Values.imageGate.mode "pullers" (include "roost.pullers" (list $.root $.root.Values.singleuser $.root.Values.prePuller) | fromJsonArray)) "retentionDays" $.root.Values.recorder.retentionDays) }}{{- end }}
