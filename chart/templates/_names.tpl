{{- /*
Names of objects, labels and images, written by hand. Each is the twin of the function of that name in
roost_core/placement/labels.py or roost_core/objects/image_references.py; tests/parity/test_helpers.py holds them together.
*/}}

{{- /* roost.base_name (list $): how the names of a release's namespaced objects begin. */}}
{{- define "roost.base_name" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.fullnameOverride -}}
{{- toString $root.Values.fullnameOverride -}}
{{- else if hasPrefix "roost" $root.Release.Name -}}
{{- $root.Release.Name -}}
{{- else -}}
{{- printf "%s-roost" $root.Release.Name -}}
{{- end -}}
{{- end }}

{{- /* roost.object_name (list $ COMPONENT LIMIT): a namespaced object, of at most LIMIT characters; 63 without it. */}}
{{- define "roost.object_name" -}}
{{- $limit := 63 -}}
{{- if gt (len .) 2 }}{{ $limit = index . 2 }}{{ end -}}
{{- $name := printf "%s-%s" (include "roost.base_name" .) (index . 1) -}}
{{- include "roost.dns_label" (list $name $limit) -}}
{{- end }}

{{- /* roost.cluster_object_name (list $ COMPONENT): an object without a namespace. */}}
{{- define "roost.cluster_object_name" -}}
{{- $release := (index . 0).Release -}}
{{- printf "%s.%s.roost-%s" $release.Name $release.Namespace (index . 1) -}}
{{- end }}

{{- /* roost.scheduler_name (list $ PROFILE): schedulerName of a profile. */}}
{{- define "roost.scheduler_name" -}}
{{- $release := (index . 0).Release -}}
{{- $name := printf "%s.%s.%s" $release.Name $release.Namespace (index . 1) -}}
{{- include "roost.shorten" (list $name 63) -}}
{{- end }}

{{- /* roost.dashboard_uid (list $ KIND): Grafana takes 40 characters. */}}
{{- define "roost.dashboard_uid" -}}
{{- $release := (index . 0).Release -}}
{{- $name := printf "roost-%s_%s_%s" (index . 1) $release.Name $release.Namespace -}}
{{- include "roost.dns_label" (list $name 40) -}}
{{- end }}

{{- /* roost.pulled_prefix (list $): of all node labels that tell of an image. */}}
{{- define "roost.pulled_prefix" -}}
{{- $release := (index . 0).Release -}}
{{- printf "images-pulled.%s.%s.hub.jupyter.org/" $release.Name $release.Namespace -}}
{{- end }}

{{- /* roost.pulled_label (list $ IMAGE): the node label that tells of an image. */}}
{{- define "roost.pulled_label" -}}
{{- $image := include "roost.normalise_reference" (index . 1) -}}
{{- printf "%s%s-%s" (include "roost.pulled_prefix" .) (include "roost.short_name" $image) (include "roost.hash" $image) -}}
{{- end }}

{{- /* roost.puller_container (list $ IMAGE): the puller's container for an image. */}}
{{- define "roost.puller_container" -}}
{{- $image := include "roost.normalise_reference" (index . 1) -}}
{{- printf "%s-%s" (include "roost.short_name" $image | lower) (include "roost.hash" $image) -}}
{{- end }}

{{- /* roost.puller_component SELECTOR REST, as a list: the puller's DaemonSet for nodes with these labels. REST: what else
   selects its nodes, as text. */}}
{{- define "roost.puller_component" -}}
{{- $values := list -}}
{{- $pairs := "" -}}
{{- range $key, $value := index . 0 -}}
{{- $values = append $values $value -}}
{{- $pairs = printf "%s%s=%s," $pairs $key $value -}}
{{- end -}}
{{- $readable := regexReplaceAll "[^A-Za-z0-9]+" (join "-" $values) "-" | lower | trunc 30 | trimAll "-" -}}
{{- $hash := include "roost.hash" (print $pairs (index . 1)) -}}
{{- if $readable }}{{ printf "puller-%s-%s" $readable $hash }}{{ else }}{{ printf "puller-%s" $hash }}{{ end -}}
{{- end }}

{{- /* roost.popular_prefix (list $): of the pods that pull popular images; 41 characters are before a long name's hash. */}}
{{- define "roost.popular_prefix" -}}
{{- $prefix := printf "%s-popular-" (index . 0).Release.Name | replace "." "-" -}}
{{- if le (len $prefix) 41 -}}
{{- $prefix -}}
{{- else -}}
{{- regexReplaceAll "[-._]+$" (trunc 41 $prefix) "" -}}
{{- end -}}
{{- end }}

{{- /* roost.attract_prefix (list $): of all node labels that attract placeholders. */}}
{{- define "roost.attract_prefix" -}}
{{- $release := (index . 0).Release -}}
{{- printf "attract-placeholders.%s.%s.hub.jupyter.org/" $release.Name $release.Namespace -}}
{{- end }}

{{- /* roost.attract_label (list $ SET): the node label that attracts the placeholders of a set. */}}
{{- define "roost.attract_label" -}}
{{- print (include "roost.attract_prefix" .) (include "roost.shorten" (list (index . 1) 63)) -}}
{{- end }}

{{- /* roost.startup_taint (list $): the taint with which autoscaled nodes join. */}}
{{- define "roost.startup_taint" -}}
{{- $release := (index . 0).Release -}}
{{- $name := printf "roost-%s.%s" $release.Name $release.Namespace -}}
{{- printf "startup-taint.cluster-autoscaler.kubernetes.io/%s" (include "roost.shorten" (list $name 63)) -}}
{{- end }}

{{- /* roost.dns_label (list NAME LIMIT): as roost.shorten, for names that may hold no dots. */}}
{{- define "roost.dns_label" -}}
{{- $name := index . 0 -}}
{{- if contains "." $name -}}
{{- include "roost.with_hash" (list (replace "." "-" $name) $name (index . 1)) -}}
{{- else -}}
{{- include "roost.shorten" . -}}
{{- end -}}
{{- end }}

{{- /* roost.shorten (list NAME LIMIT): the name, or its head and a hash where it is longer than LIMIT. */}}
{{- define "roost.shorten" -}}
{{- $name := index . 0 -}}
{{- if le (len $name) (index . 1) -}}
{{- $name -}}
{{- else -}}
{{- include "roost.with_hash" (list $name $name (index . 1)) -}}
{{- end -}}
{{- end }}

{{- /* roost.with_hash (list HEAD NAME LIMIT): as much of HEAD as leaves room for NAME's hash. */}}
{{- define "roost.with_hash" -}}
{{- $head := trunc (sub (index . 2) 9 | int) (index . 0) -}}
{{- printf "%s-%s" (regexReplaceAll "[-._]+$" $head "") (include "roost.hash" (index . 1)) -}}
{{- end }}

{{- /* roost.hash TEXT: the first eight digits of its SHA-256. */}}
{{- define "roost.hash" -}}
{{- sha256sum . | trunc 8 -}}
{{- end }}

{{- /* roost.split_reference IMAGE: as JSON, its repository, tag and digest, each "" where it has none. */}}
{{- define "roost.split_reference" -}}
{{- $named := splitList "@" . | first -}}
{{- $digest := trimPrefix $named . | trimPrefix "@" -}}
{{- $last := splitList "/" $named | last -}}
{{- /* A port's colon stands before the last slash. */ -}}
{{- $with_colon := trimPrefix (splitList ":" $last | first) $last -}}
{{- $repository := trimSuffix $with_colon $named -}}
{{- dict "repository" $repository "tag" (trimPrefix ":" $with_colon) "digest" $digest | toJson -}}
{{- end }}

{{- /* roost.normalise_reference IMAGE: with its registry, and with a tag or a digest. */}}
{{- define "roost.normalise_reference" -}}
{{- $parts := include "roost.split_reference" . | fromJson -}}
{{- $repository := $parts.repository -}}
{{- $registry := splitList "/" $repository | first -}}
{{- $path := trimPrefix (printf "%s/" $registry) $repository -}}
{{- $has_slash := contains "/" $repository -}}
{{- if and $has_slash (eq $registry "index.docker.io") -}}
{{- $registry = "docker.io" -}}
{{- else if not (and $has_slash (or (eq $registry "localhost") (regexMatch "[.:A-Z]" $registry))) -}}
{{- $registry = "docker.io" -}}
{{- $path = $repository -}}
{{- end -}}
{{- if and (eq $registry "docker.io") (not (contains "/" $path)) -}}
{{- $path = printf "library/%s" $path -}}
{{- end -}}
{{- if $parts.digest -}}
{{- printf "%s/%s@%s" $registry $path $parts.digest -}}
{{- else -}}
{{- printf "%s/%s:%s" $registry $path (default "latest" $parts.tag) -}}
{{- end -}}
{{- end }}

{{- /* roost.short_name IMAGE: the last part of a normalised reference, for use in a label. */}}
{{- define "roost.short_name" -}}
{{- $last := splitList "/" . | last | splitList "@" | first -}}
{{- regexReplaceAll "[^A-Za-z0-9]+" $last "-" | trunc 54 | trimAll "-" | default "image" -}}
{{- end }}
