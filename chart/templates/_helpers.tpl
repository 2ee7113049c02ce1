{{- /*
Names, as placement/labels.py makes them for `roost render`. Written by hand: its twin in Python is too, and
tests/parity/ holds the two together. Each takes a list whose first item is the chart's root (`$`).
*/}}

{{- /* roost.shorten (list NAME LIMIT): NAME, or its head and an 8-digit hash when it is longer than LIMIT. */}}
{{- define "roost.shorten" -}}
{{- $name := index . 0 -}}
{{- $limit := int (index . 1) -}}
{{- if le (len $name) $limit -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" (regexReplaceAll "[-._]+$" (trunc (sub $limit 9 | int) $name) "") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- end }}

{{- /* roost.dns_label (list NAME LIMIT): like roost.shorten, for names that may not hold dots. */}}
{{- define "roost.dns_label" -}}
{{- $name := index . 0 -}}
{{- $limit := int (index . 1) -}}
{{- if contains "." $name -}}
{{- $head := replace "." "-" $name | trunc (sub $limit 9 | int) -}}
{{- printf "%s-%s" (regexReplaceAll "[-._]+$" $head "") (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- include "roost.shorten" (list $name $limit) -}}
{{- end -}}
{{- end }}

{{- /* roost.object_name (list $ COMPONENT [LIMIT]): name of an object in the release's namespace. */}}
{{- define "roost.object_name" -}}
{{- $root := index . 0 -}}
{{- $base := $root.Values.fullnameOverride | default (printf "%s-roost" $root.Release.Name) -}}
{{- $limit := 63 -}}
{{- if gt (len .) 2 }}{{ $limit = int (index . 2) }}{{ end -}}
{{- include "roost.dns_label" (list (printf "%s-%s" $base (index . 1)) $limit) -}}
{{- end }}

{{- /* roost.cluster_object_name (list $ COMPONENT): name of an object without a namespace. */}}
{{- define "roost.cluster_object_name" -}}
{{- $root := index . 0 -}}
{{- printf "%s.%s.roost-%s" $root.Release.Name $root.Release.Namespace (index . 1) -}}
{{- end }}

{{- /* roost.scheduler_name (list $ PROFILE): schedulerName of a profile. */}}
{{- define "roost.scheduler_name" -}}
{{- $root := index . 0 -}}
{{- include "roost.shorten" (list (printf "%s.%s.%s" $root.Release.Name $root.Release.Namespace (index . 1)) 63) -}}
{{- end }}

{{- /* roost.attract_label (list $ SET): node label that draws the placeholders of one set. */}}
{{- define "roost.attract_label" -}}
{{- $root := index . 0 -}}
{{- $prefix := printf "attract-placeholders.%s.%s" $root.Release.Name $root.Release.Namespace -}}
{{- printf "%s.hub.jupyter.org/%s" $prefix (include "roost.shorten" (list (index . 1) 63)) -}}
{{- end }}

{{- /* roost.startup_taint (list $): key of the taint under which autoscaled nodes join. */}}
{{- define "roost.startup_taint" -}}
{{- $root := index . 0 -}}
{{- $name := printf "roost-%s-%s" $root.Release.Name $root.Release.Namespace -}}
{{- printf "startup-taint.cluster-autoscaler.kubernetes.io/%s" (include "roost.shorten" (list $name 63)) -}}
{{- end }}

{{- /* roost.normalise_reference REFERENCE: the full form of an image's name, as placement/images.py gives it. */}}
{{- define "roost.normalise_reference" -}}
{{- $digest := "" -}}
{{- $named := . -}}
{{- if contains "@" . -}}
{{- $parts := splitn "@" 2 . -}}
{{- $named = $parts._0 -}}
{{- $digest = $parts._1 -}}
{{- end -}}
{{- $last := regexFind "[^/]*$" $named -}}
{{- $tag := "" -}}
{{- if contains ":" $last -}}
{{- $tag = regexReplaceAll "^[^:]*:" $last "" -}}
{{- end -}}
{{- $repository := printf "%s%s" (trimSuffix $last $named) (regexFind "^[^:]*" $last) -}}
{{- if not (contains "/" $repository) -}}
{{- $repository = printf "docker.io/library/%s" $repository -}}
{{- else -}}
{{- $first := regexFind "^[^/]*" $repository -}}
{{- if not (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- $repository = printf "docker.io/%s" $repository -}}
{{- end -}}
{{- end -}}
{{- if $digest -}}
{{- printf "%s@%s" $repository $digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($tag | default "latest") -}}
{{- end -}}
{{- end }}

{{- /* roost.pulled_label (list $ REFERENCE): node label that says: this node holds the image. */}}
{{- define "roost.pulled_label" -}}
{{- $root := index . 0 -}}
{{- $full := include "roost.normalise_reference" (index . 1) -}}
{{- $last := regexFind "[^/]*$" $full | regexFind "^[^@]*" -}}
{{- $short := regexReplaceAll "[^A-Za-z0-9]+" $last "-" | trunc 54 | trimAll "-" | default "image" -}}
{{- $prefix := printf "images-pulled.%s.%s" $root.Release.Name $root.Release.Namespace -}}
{{- printf "%s.hub.jupyter.org/%s-%s" $prefix $short (sha256sum $full | trunc 8) -}}
{{- end }}

{{- /* roost.for_cluster (list $ BY_MINOR): the entry of the newest minor that the cluster has reached, else the oldest. */}}
{{- define "roost.for_cluster" -}}
{{- $root := index . 0 -}}
{{- $reached := "" -}}
{{- $oldest := "" -}}
{{- range $minor, $_ := index . 1 -}}
{{- if or (not $oldest) (semverCompare (printf "<%s.0" $oldest) (printf "%s.0" $minor)) }}{{ $oldest = $minor }}{{ end -}}
{{- if semverCompare (printf ">=%s-0" $minor) $root.Capabilities.KubeVersion.Version -}}
{{- if or (not $reached) (semverCompare (printf ">%s.0" $reached) (printf "%s.0" $minor)) }}{{ $reached = $minor }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $oldest }}{{ index . 1 | dig ($reached | default $oldest) "" }}{{ end -}}
{{- end }}

{{- /* roost.merge (list MAP MAP …): as JSON, all entries; a later map's wins. Sprig's merge would skip empty ones. */}}
{{- define "roost.merge" -}}
{{- $merged := dict -}}
{{- range $map := . }}{{ range $key, $value := $map }}{{ $_ := set $merged $key $value }}{{ end }}{{ end -}}
{{- toJson $merged -}}
{{- end }}

{{- /* roost.override_image HOLDER: `kubespawner_override.image` of a profile or a choice; "" for one nobody can pull. */}}
{{- define "roost.override_image" -}}
{{- if and (kindIs "map" .) (kindIs "map" (get (ternary . dict (kindIs "map" .)) "kubespawner_override")) -}}
{{- $image := .kubespawner_override.image -}}
{{- if and (kindIs "string" $image) (not (contains "{" (toString $image))) }}{{ $image }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* roost.pulled_labels (list $ SINGLEUSER PREPULLER): as JSON, the node label of each image that the puller brings, by
each way to write that image. Which images those are: placement/managed_images.py. */}}
{{- define "roost.pulled_labels" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $puller := index . 2 -}}
{{- $written := list -}}
{{- $named := list $singleuser.image -}}
{{- range $_, $image := $puller.extraImages }}{{ $named = append $named $image }}{{ end -}}
{{- range $image := $named -}}
{{- if and (kindIs "map" $image) (get $image "name") -}}
{{- $written = append $written (ternary (printf "%v:%v" $image.name $image.tag) $image.name (not (empty $image.tag))) -}}
{{- end -}}
{{- end -}}
{{- if $puller.pullProfileListImages -}}
{{- range $_, $profile := $singleuser.profileList -}}
{{- $written = append $written (include "roost.override_image" $profile) -}}
{{- $options := get $profile "profile_options" -}}
{{- if or (kindIs "map" $options) (kindIs "slice" $options) -}}
{{- range $_, $option := $options -}}
{{- if kindIs "map" $option -}}
{{- $choices := get $option "choices" -}}
{{- if or (kindIs "map" $choices) (kindIs "slice" $choices) -}}
{{- range $_, $choice := $choices }}{{ $written = append $written (include "roost.override_image" $choice) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $labels := dict -}}
{{- range $reference := $written -}}
{{- if $reference -}}
{{- $full := include "roost.normalise_reference" $reference -}}
{{- $label := include "roost.pulled_label" (list $root $full) -}}
{{- range $form := list $full (trimPrefix "docker.io/" $full) (trimPrefix "docker.io/library/" $full) -}}
{{- $_ := set $labels $form $label -}}
{{- $_ := set $labels (trimSuffix ":latest" $form) $label -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $labels -}}
{{- end }}

{{- /* roost.names LIST: as JSON, the `name` of each entry. */}}
{{- define "roost.names" -}}
{{- $names := list -}}
{{- range $_, $entry := . }}{{ $names = append $names $entry.name }}{{ end -}}
{{- toJson $names -}}
{{- end }}
